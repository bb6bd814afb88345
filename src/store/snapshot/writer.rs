//! Writes the snapshot to disk beside the path of requests.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout};
use tokio::{task, time};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::state_file::{MIN_APPENDED, StateFile};
use crate::rules::key::KeyHash;
use crate::store::bans::codec::SavedBan;
use crate::store::memory::{ChangeMark, MemoryStore};
use crate::store::sessions::codec::{KnownSession, SavedSession};
use crate::store::snapshot::frame;
use crate::words::clock::Timestamp;
use crate::words::signing::KeySeed;
use crate::words::{clock, files};

/// The pause between writes of changes, unless writing takes long.
const PACE: Duration = Duration::from_secs(1);

/// A ban that begins or is lifted is written sooner, so that hardly a crash loses one.
const SHORTEST_REST: Duration = Duration::from_millis(10);

/// Writing takes at most one part in this many of the time.
const IDLE_PARTS: u32 = 20;

/// At most so many bytes are written a second: a million sessions are 50 MB, and some of them change all the time.
const BYTES_PER_SECOND: u32 = 4 << 20;

/// Writes the snapshot, while no other process does.
#[derive(Debug)]
pub struct SnapshotWriter {
    /// `None`: there is no snapshot.
    path: Option<PathBuf>,
    /// See [`MIN_APPENDED`].
    min_appended: u64,
    state: Mutex<WriterState>,
}

#[derive(Debug, Default)]
struct WriterState {
    is_suspended: bool,
    /// `None`: this process has not begun one, or no longer knows what is in it.
    file: Option<StateFile>,
    failure: Option<SnapshotFailure>,
}

/// Why the snapshot cannot be written.
#[derive(Clone, Debug)]
pub struct SnapshotFailure {
    pub path: PathBuf,
    pub why: String,
    pub since: Timestamp,
}

impl SnapshotWriter {
    pub fn new(path: Option<PathBuf>) -> Self {
        Self::with_min_appended(path, MIN_APPENDED)
    }

    pub(super) fn with_min_appended(path: Option<PathBuf>, min_appended: u64) -> Self {
        Self { path, min_appended, state: Mutex::default() }
    }

    /// Stops writing, because the file belongs to another process now. No write is under way when this returns.
    pub fn suspend(&self) {
        *self.state.lock() = WriterState { is_suspended: true, ..WriterState::default() };
    }

    /// Writes again, because the other process has not taken over. It may have begun a file in place of the one there was,
    /// so this process begins one too.
    pub fn resume(&self) {
        self.state.lock().is_suspended = false;
    }

    /// Why what was to be written last was not. `None`: it was.
    pub fn failure(&self) -> Option<SnapshotFailure> {
        self.state.lock().failure.clone()
    }

    /// Notes how a write ended. Returns whether it failed after one that did not.
    fn note(&self, path: &Path, failed: Option<&io::Error>) -> bool {
        let mut state = self.state.lock();
        let before = state.failure.take();
        let is_news = failed.is_some() && before.is_none();
        state.failure = failed.map(|error| {
            let since = before.map_or_else(clock::wall, |before| before.since);
            SnapshotFailure { path: path.to_owned(), why: files::describe(error), since }
        });
        is_news
    }

    /// Where there are changes to write, or the first state.
    pub(super) fn destination(&self, store: &MemoryStore) -> Option<PathBuf> {
        let path = self.path.as_ref()?;
        let state = self.state.lock();
        let is_due = !state.is_suspended && state.file.as_ref().is_none_or(|file| file.is_behind(store));
        is_due.then(|| path.clone())
    }

    /// Returns how many bytes were written.
    pub(super) fn write(&self, path: &Path, store: &MemoryStore) -> io::Result<u64> {
        let mut state = self.state.lock();
        if state.is_suspended {
            return Ok(0);
        }
        if let Some(mut file) = state.file.take().filter(|file| !file.is_over(path, store, self.min_appended)) {
            let before = file.length();
            if file.append(store)? {
                let appended = file.length() - before;
                state.file = Some(file);
                return Ok(appended);
            }
        }
        let file = state.file.insert(StateFile::begin(path, store)?);
        Ok(file.length())
    }

    /// Nothing can be appended to the file from now on.
    #[cfg(test)]
    pub(super) fn break_file(&self) {
        self.state.lock().file.as_mut().expect("a file").break_handle();
    }
}

/// Removes expired bans and writes changes until it is stopped, and then once more.
pub async fn write_changes(writer: Arc<SnapshotWriter>, store: Arc<MemoryStore>, stop: CancellationToken) {
    let mut is_last = false;
    loop {
        // From before the write, so that no ban is missed that begins meanwhile.
        let mut banned = pin!(store.bans().changed());
        banned.as_mut().enable();
        store.bans().remove_expired();
        store.remove_expired_sessions();
        let (mut pace, mut rest) = (PACE, SHORTEST_REST);
        if let Some(path) = writer.destination(&store) {
            let begun = Instant::now();
            let (with, to, of) = (Arc::clone(&writer), path.clone(), Arc::clone(&store));
            let outcome = task::spawn_blocking(move || with.write(&to, &of)).await;
            rest = rest.max(begun.elapsed() * IDLE_PARTS);
            pace = pace.max(rest);
            let written = outcome.unwrap_or_else(|error| Err(io::Error::other(error)));
            let is_news = writer.note(&path, written.as_ref().err());
            match written {
                Ok(bytes) => pace = pace.max(Duration::from_secs(bytes) / BYTES_PER_SECOND),
                Err(error) if is_news => {
                    let name = path.display();
                    warn!(file = %name, "{name}: {error}: a restart would lose bans, known clients and sessions; the gateway tries again");
                }
                Err(_) => {}
            }
        }
        if is_last {
            return;
        }
        let pause = async {
            if timeout(pace, banned).await.is_ok() {
                time::sleep(rest).await;
            }
        };
        is_last = stop.run_until_cancelled(pause).await.is_none();
    }
}

// A snapshot in one piece: as a process sends it to the one that takes over, and as earlier versions wrote it to disk.

/// The first bytes; the digit is the version of the format on disk.
const MAGIC: &[u8] = b"portcullis state 1\n";

/// The version of files that are in one piece.
pub(super) const VERSION: u32 = 1;

/// Writes the content of a snapshot, for another process to [`import`].
pub fn export(store: &MemoryStore) -> io::Result<Vec<u8>> {
    encode(&SnapshotContent::of(store), |bytes| store.write_sessions(bytes))
}

/// The same without the sessions, which are sent in pieces of their own.
pub(in crate::store) fn export_without_sessions(store: &MemoryStore) -> io::Result<Vec<u8>> {
    encode(&SnapshotContent::of(store), |_| {})
}

/// Takes over the snapshot of another process; `false`: it is damaged, or of another version.
pub fn import(bytes: &[u8], store: &mut MemoryStore) -> bool {
    let Some((content, sessions)) = decode(bytes) else { return false };
    store.hash_with(content.secret);
    content.put_into(store);
    store.restore_sessions(sessions);
    true
}

/// Takes over a newer snapshot of the same process in place of the first one. `false`: it is unreadable, or that
/// process hashes keys with another secret.
pub(in crate::store) fn import_update(bytes: &[u8], store: &MemoryStore) -> bool {
    match decode(bytes) {
        Some((content, _)) if content.secret == store.secret() => {
            content.put_into(store);
            true
        }
        _ => false,
    }
}

/// `None`: it is damaged, or of another version.
pub(super) fn decode(bytes: &[u8]) -> Option<(SnapshotContent, Vec<KnownSession>)> {
    let (sum, payload) = bytes.strip_prefix(MAGIC)?.split_first_chunk::<8>()?;
    if frame::checksum(payload) != u64::from_le_bytes(*sum) {
        return None;
    }
    let (content, sessions) = postcard::take_from_bytes(payload).ok()?;
    Some((content, SavedSession::read_all(sessions)?))
}

/// `sessions` appends the sessions. Versions that know no sessions read what stands before them.
fn encode(content: &SnapshotContent, sessions: impl FnOnce(&mut Vec<u8>)) -> io::Result<Vec<u8>> {
    let begin = MAGIC.len() + size_of::<u64>();
    let mut bytes = vec![0; begin];
    bytes = postcard::to_extend(content, bytes).map_err(io::Error::other)?;
    sessions(&mut bytes);
    let sum = frame::checksum(&bytes[begin..]).to_le_bytes();
    bytes[..MAGIC.len()].copy_from_slice(MAGIC);
    bytes[MAGIC.len()..begin].copy_from_slice(&sum);
    Ok(bytes)
}

// The content of a snapshot, in the order in which it was written first.

/// The content of a snapshot without the sessions. Moments and spans are microseconds.
#[derive(Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct SnapshotContent {
    pub(super) secret: [u8; 16],
    pub(super) bans: Vec<SavedBan>,
    pub(super) seeds: Vec<(Timestamp, [u8; 32])>,
    /// The subject with the latest success last, and of each the latest client first.
    pub(super) known: Vec<(KeyHash, Vec<(u64, Timestamp)>)>,
}

impl SnapshotContent {
    pub(super) fn of(store: &MemoryStore) -> Self {
        let bans = store.bans().records().into_iter().map(|record| SavedBan::of(&record));
        Self {
            secret: store.secret(),
            bans: bans.collect(),
            seeds: seeds_of(store),
            known: store.known_clients_between(&ChangeMark::default(), &store.change_mark()).collect(),
        }
    }

    /// Replaces the bans, signing keys and known clients of the store.
    pub(super) fn put_into(self, store: &MemoryStore) {
        let before = store.bans().mark();
        self.bans.iter().filter_map(SavedBan::read).for_each(|record| store.bans().insert(record));
        store.bans().remove_unchanged_since(before);
        let seeds: Vec<KeySeed> = self.seeds.into_iter().map(|(made, secret)| KeySeed { made, secret }).collect();
        store.import_seeds(&seeds);
        store.restore_known_clients(self.known);
    }
}

/// All keys that the store signs with.
pub(super) fn seeds_of(store: &MemoryStore) -> Vec<(Timestamp, [u8; 32])> {
    let seeds = store.key_ring().load().own_seeds().into_iter();
    seeds.map(|seed| (seed.made, seed.secret)).collect()
}
