//! The snapshot of a gateway that counts in memory: bans, known clients, sessions and signing keys survive a restart,
//! counts do not.
//!
//! The snapshot is one file that only its owner may read, because it contains the secret that keys are hashed with, and the
//! addresses of banned clients.

use std::ffi::OsString;
use std::fs;
use std::fs::File;
use std::fs::OpenOptions;
use std::hash::Hasher;
use std::io;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Deserialize;
use serde::Serialize;
use siphasher::sip::SipHasher24;
use tokio::task;
use tokio::time;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::info;
use tracing::warn;

use super::bans::saved::SavedBan;
use super::memory::MemoryStore;
use super::sessions::saved::SavedSession;
use crate::clock::Timestamp;
use crate::files;
use crate::key::KeyHash;
use crate::signing::KeySeed;

/// The first bytes of the file; the digit is the version of the format.
const MAGIC: &[u8] = b"portcullis state 1\n";

/// The pause between writes of changes, unless writing takes long.
const PACE: Duration = Duration::from_secs(1);

/// Writing takes at most one part in this many of the time.
const IDLE_PARTS: u32 = 20;

/// At most so many bytes are written a second: a million sessions are 44 MB, and some of them change all the time.
const BYTES_PER_SECOND: u32 = 4 << 20;

/// Moments and spans are microseconds.
#[derive(Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct SnapshotContent {
    pub(super) secret: [u8; 16],
    bans: Vec<SavedBan>,
    seeds: Vec<(u64, [u8; 32])>,
    known: Vec<(u128, Vec<(u64, u64)>)>,
}

/// Why a snapshot cannot be read.
#[derive(Debug, thiserror::Error)]
enum SnapshotError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the snapshot is damaged, or of another version")]
    Damaged,
}

/// Reads the snapshot of the last process. If the file cannot be read, this logs a warning and the gateway starts
/// without it.
pub fn restore(path: &Path, store: &mut MemoryStore) {
    let (content, sessions) = match read(path) {
        Ok(content) => content,
        Err(SnapshotError::Io(error)) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => {
            let aside = beside(path, ".damaged");
            let is_kept = matches!(error, SnapshotError::Damaged) && fs::rename(path, &aside).is_ok();
            let kept = if is_kept { format!("; the file is kept as {}", aside.display()) } else { String::new() };
            warn!(
                file = %path.display(),
                "{}: {error}: earlier bans, known clients and sessions are lost{kept}", path.display()
            );
            return;
        }
    };
    let (bans, known) = (content.bans.len(), content.known.len());
    store.hash_with(content.secret);
    content.put_into(store);
    store.restore_sessions(&sessions);
    let sessions = sessions.len();
    info!(
        file = %path.display(),
        "{}: read {bans} bans, the known clients of {known} names and {sessions} sessions", path.display()
    );
}

/// Writes the content of a snapshot, for another process to [`import`].
pub fn export(store: &MemoryStore) -> io::Result<Vec<u8>> {
    encode(&SnapshotContent::of(store), |bytes| store.write_sessions(bytes))
}

/// The same without the sessions, which are sent in pieces of their own.
pub(super) fn export_without_sessions(store: &MemoryStore) -> io::Result<Vec<u8>> {
    encode(&SnapshotContent::of(store), |_| {})
}

/// Takes over the snapshot of another process; `false`: it is damaged, or of another version.
pub fn import(bytes: &[u8], store: &mut MemoryStore) -> bool {
    let Ok((content, sessions)) = decode(bytes) else { return false };
    store.hash_with(content.secret);
    content.put_into(store);
    store.restore_sessions(&sessions);
    true
}

/// Takes over a newer snapshot of the same process in place of the first one. `false`: it is unreadable, or that
/// process hashes keys with another secret.
pub(super) fn import_update(bytes: &[u8], store: &MemoryStore) -> bool {
    match decode(bytes) {
        Ok((content, _)) if content.secret == store.secret() => {
            content.put_into(store);
            true
        }
        _ => false,
    }
}

/// Writes the snapshot, while no other process does.
#[derive(Debug)]
pub struct SnapshotWriter {
    /// `None`: there is no snapshot.
    path: Option<PathBuf>,
    is_suspended: Mutex<bool>,
}

impl SnapshotWriter {
    pub fn new(path: Option<PathBuf>) -> Self {
        Self { path, is_suspended: Mutex::new(false) }
    }

    /// Stops writing, because the file belongs to another process now. No write is under way when this returns.
    pub fn suspend(&self) {
        *self.is_suspended.lock() = true;
    }

    /// Writes again, because the other process has not taken over.
    pub fn resume(&self) {
        *self.is_suspended.lock() = false;
    }

    /// Returns how many bytes were written.
    fn write(&self, path: &Path, store: &MemoryStore) -> io::Result<u64> {
        let is_suspended = self.is_suspended.lock();
        if *is_suspended { Ok(0) } else { write(path, &export(store)?) }
    }
}

/// Removes expired bans and writes changes until it is stopped, and then once more.
pub async fn write_changes(writer: Arc<SnapshotWriter>, store: Arc<MemoryStore>, stop: CancellationToken) {
    let mut written = None;
    let mut pace = Duration::ZERO;
    let mut is_writable = true;
    loop {
        let is_last = stop.run_until_cancelled(time::sleep(pace)).await.is_none();
        store.bans().remove_expired();
        store.remove_expired_sessions();
        pace = PACE;
        let mark = store.change_mark();
        if let Some(path) = writer.path.as_ref().filter(|_| written.as_ref() != Some(&mark)) {
            let begun = Instant::now();
            let (with, to, of) = (Arc::clone(&writer), path.clone(), Arc::clone(&store));
            let outcome = task::spawn_blocking(move || with.write(&to, &of));
            let outcome = outcome.await.unwrap_or_else(|error| Err(io::Error::other(error)));
            pace = pace.max(begun.elapsed() * IDLE_PARTS);
            match outcome {
                Ok(bytes) => {
                    (written, is_writable) = (Some(mark), true);
                    pace = pace.max(Duration::from_secs(bytes) / BYTES_PER_SECOND);
                }
                Err(error) => {
                    if is_writable {
                        let name = path.display();
                        warn!(file = %name, "{name}: {error}: a restart would lose bans, known clients and sessions; the gateway tries again");
                    }
                    is_writable = false;
                }
            }
        }
        if is_last {
            return;
        }
    }
}

impl SnapshotContent {
    fn of(store: &MemoryStore) -> Self {
        let bans = store.bans().records().into_iter().map(|record| SavedBan::of(&record));
        let seeds = store.key_ring().load().own_seeds().into_iter().map(|seed| (seed.made.as_micros(), seed.secret));
        let known = store.known_clients().into_iter().map(|(subject, clients)| {
            (subject.0, clients.into_iter().map(|(client, until)| (client, until.as_micros())).collect())
        });
        Self { secret: store.secret(), bans: bans.collect(), seeds: seeds.collect(), known: known.collect() }
    }

    /// Replaces the bans, signing keys and known clients of the store.
    fn put_into(self, store: &MemoryStore) {
        let before = store.bans().mark();
        self.bans.iter().filter_map(SavedBan::read).for_each(|record| store.bans().insert(record));
        store.bans().remove_unchanged_since(before);
        let seeds = self.seeds.into_iter();
        let seeds: Vec<KeySeed> =
            seeds.map(|(made, secret)| KeySeed { made: Timestamp::from_micros(made), secret }).collect();
        store.import_seeds(&seeds);
        store.restore_known_clients(self.known.into_iter().map(|(subject, clients)| {
            let clients = clients.into_iter().map(|(client, until)| (client, Timestamp::from_micros(until)));
            (KeyHash(subject), clients.collect())
        }));
    }
}

/// What a snapshot holds.
type Decoded = (SnapshotContent, Vec<SavedSession>);

fn read(path: &Path) -> Result<Decoded, SnapshotError> {
    let bytes = files::read(path, u64::MAX - 1)?.ok_or(SnapshotError::Damaged)?;
    decode(&bytes)
}

fn decode(bytes: &[u8]) -> Result<Decoded, SnapshotError> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(SnapshotError::Damaged)?;
    let (sum, payload) = rest.split_first_chunk::<8>().ok_or(SnapshotError::Damaged)?;
    if checksum(payload) != u64::from_le_bytes(*sum) {
        return Err(SnapshotError::Damaged);
    }
    let (content, sessions) = postcard::take_from_bytes(payload).map_err(|_| SnapshotError::Damaged)?;
    Ok((content, SavedSession::read_all(sessions).ok_or(SnapshotError::Damaged)?))
}

/// `sessions` appends the sessions. Versions that know no sessions read what stands before them.
fn encode(content: &SnapshotContent, sessions: impl FnOnce(&mut Vec<u8>)) -> io::Result<Vec<u8>> {
    let begin = MAGIC.len() + size_of::<u64>();
    let mut bytes = vec![0; begin];
    bytes = postcard::to_extend(content, bytes).map_err(io::Error::other)?;
    sessions(&mut bytes);
    let sum = checksum(&bytes[begin..]).to_le_bytes();
    bytes[..MAGIC.len()].copy_from_slice(MAGIC);
    bytes[MAGIC.len()..begin].copy_from_slice(&sum);
    Ok(bytes)
}

/// Replaces the file in one step, so that a reader sees either the old or the new snapshot.
fn write(path: &Path, bytes: &[u8]) -> io::Result<u64> {
    let draft = beside(path, ".new");
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&draft, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()?;
    u64::try_from(bytes.len()).map_err(io::Error::other)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

/// Detects damage, not forgery: a person who can write the file can write the checksum too.
fn checksum(payload: &[u8]) -> u64 {
    let mut hasher = SipHasher24::new_with_key(b"portcullis-state");
    hasher.write(payload);
    hasher.finish()
}

#[cfg(test)]
mod tests;
