//! Reads the snapshot of the last process when the gateway starts.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};
use std::{fs, io};

use tracing::{info, warn};

use super::state_file::beside;
use crate::rules::key::KeyHash;
use crate::store::bans::BanId;
use crate::store::bans::codec::SavedBan;
use crate::store::memory::MemoryStore;
use crate::store::sessions::codec::KnownSession;
use crate::store::snapshot::frame::{Part, Parts, Record};
use crate::store::snapshot::writer::SnapshotContent;
use crate::store::snapshot::{frame, writer};
use crate::words::clock::Timestamp;
use crate::words::units::counted;
use crate::words::{clock, files};

/// Clocks are corrected by less than this all the time.
const NOTABLE: Duration = Duration::from_secs(5);

/// Why there is no snapshot.
#[derive(Debug, thiserror::Error)]
enum SnapshotError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Unreadable(#[from] Unreadable),
}

/// Reads the snapshot of the last process. If the file cannot be read, this logs a warning and the gateway starts
/// without it.
pub fn restore(path: &Path, store: &mut MemoryStore) {
    let name = path.display();
    let replayed = match read(path) {
        Ok(replayed) => replayed,
        Err(SnapshotError::Io(error)) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => {
            let kept = if matches!(error, SnapshotError::Unreadable(_)) { keep(path) } else { String::new() };
            warn!(file = %name, "{name}: {error}: earlier bans, known clients and sessions are lost{kept}");
            return;
        }
    };
    let Replayed { mut content, mut sessions, torn, damaged, is_cut_short } = replayed;
    if damaged > 0 || is_cut_short {
        let (lost, kept) = (damaged + torn, keep(path));
        warn!(
            file = %name, lost,
            "{name}: the snapshot is damaged, {} of it cannot be read: some bans, known clients and sessions are lost, and \
             some that had ended may be back{kept}",
            counted(lost, "byte")
        );
    } else if torn > 0 {
        let cut = counted(torn, "byte");
        warn!(file = %name, torn, "{name}: the last {cut} were not written whole when the last process ended, and are cut off");
    }
    let correction = ClockCorrection::of(&content, &sessions, written_ahead(path), store.now());
    if correction.behind >= NOTABLE {
        let behind_seconds = correction.behind.as_secs();
        warn!(
            file = %name, behind_seconds,
            "{name}: the clock is {behind_seconds} s behind the last moment in the snapshot: it was wrong then, or is now; bans, \
             known clients and sessions last no longer than they would have"
        );
    }
    correction.apply(&mut content, &mut sessions);
    let (bans, known, count) = (content.bans.len(), content.known.len(), sessions.len());
    store.hash_with(content.secret);
    content.put_into(store);
    store.restore_sessions(sessions);
    info!(file = %name, "{name}: read {bans} bans, the known clients of {known} names and {count} sessions");
}

/// How far the wall clock is behind the last write of the file.
fn written_ahead(path: &Path) -> Duration {
    let written = fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let written = written.and_then(|written| written.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    (Timestamp::EPOCH + written).since(clock::wall())
}

fn read(path: &Path) -> Result<Replayed, SnapshotError> {
    let bytes = files::read(path, u64::MAX - 1)?.ok_or(Unreadable::Damaged)?;
    Ok(replay(&bytes)?)
}

/// Keeps the file under another name, for people: this process writes another one. Says so.
fn keep(path: &Path) -> String {
    let aside = beside(path, ".damaged");
    // A second name and not another one: until the other file is written, this one is all there is.
    drop(fs::remove_file(&aside));
    match fs::hard_link(path, &aside) {
        Ok(()) => format!("; the file is kept as {}", aside.display()),
        Err(_) => String::new(),
    }
}

// Reads a snapshot on disk: the last record about each thing is what holds.

/// The content of a file.
#[derive(Debug, Default)]
pub(super) struct Replayed {
    pub(super) content: SnapshotContent,
    pub(super) sessions: Vec<KnownSession>,
    /// How many bytes at the end are no record: the process or the machine stopped while they were written.
    pub(super) torn: usize,
    /// How many bytes before that are no record, although they were once.
    pub(super) damaged: usize,
    /// The end is missing, and with it a part of the state at the time the file was begun.
    pub(super) is_cut_short: bool,
}

/// Why a file cannot be read at all.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
pub(super) enum Unreadable {
    #[error("the snapshot is damaged")]
    Damaged,
    #[error("the snapshot is of version {0}, and this gateway reads versions up to {newest}", newest = frame::VERSION)]
    Version(u32),
}

pub(super) fn replay(file: &[u8]) -> Result<Replayed, Unreadable> {
    match frame::version(file).ok_or(Unreadable::Damaged)? {
        (writer::VERSION, _) => {
            let (content, sessions) = writer::decode(file).ok_or(Unreadable::Damaged)?;
            Ok(Replayed { content, sessions, ..Replayed::default() })
        }
        (frame::VERSION, rest) => {
            let salt = frame::read_salt(rest).ok_or(Unreadable::Damaged)?;
            Latest::default().read(Parts::new(salt, file, frame::LENGTH)).ok_or(Unreadable::Damaged)
        }
        (other, _) => Err(Unreadable::Version(other)),
    }
}

/// The last record about each thing.
#[derive(Debug, Default)]
struct Latest {
    secret: Option<[u8; 16]>,
    seeds: Vec<(Timestamp, [u8; 32])>,
    bans: HashMap<BanId, SavedBan>,
    /// The clients of each subject, and the number of the record.
    known: HashMap<KeyHash, (usize, Vec<(u64, Timestamp)>)>,
    /// How many records of known clients there were.
    successes: usize,
    sessions: HashMap<KeyHash, KnownSession>,
    is_whole: bool,
}

impl Latest {
    /// `None`: without the secret, none of it is of any use.
    fn read(mut self, parts: Parts<'_>) -> Option<Replayed> {
        let (mut torn, mut damaged) = (0, 0);
        for part in parts {
            match part {
                Part::Frame(payload) => match Record::read_all(payload) {
                    Some(records) => records.into_iter().for_each(|record| self.apply(record)),
                    None => damaged += payload.len(),
                },
                Part::Damaged(bytes) => damaged += bytes,
                Part::Torn(bytes) => torn += bytes,
            }
        }
        let mut known: Vec<_> = self.known.into_iter().collect();
        known.sort_unstable_by_key(|(_, (number, _))| *number);
        let known = known.into_iter().map(|(subject, (_, clients))| (subject, clients));
        let content = SnapshotContent {
            secret: self.secret?,
            bans: self.bans.into_values().collect(),
            seeds: self.seeds,
            known: known.collect(),
        };
        let sessions = self.sessions.into_values().collect();
        Some(Replayed { content, sessions, torn, damaged, is_cut_short: !self.is_whole })
    }

    fn apply(&mut self, record: Record) {
        match record {
            Record::Secret(secret) => self.secret = Some(secret),
            Record::Seeds(seeds) => self.seeds = seeds,
            Record::Ban(id, ban) => _ = self.bans.insert(id, ban),
            Record::NoBan(id) => _ = self.bans.remove(&id),
            Record::KnownClients(subject, clients) => {
                self.successes += 1;
                self.known.insert(subject, (self.successes, clients));
            }
            Record::Session(known) => _ = self.sessions.insert(known.session, known),
            Record::NoSession(session) => _ = self.sessions.remove(&session),
            Record::Whole => self.is_whole = true,
        }
    }
}

// Correcting the moments of a snapshot where the clock was wrong, or is right again.

/// Where the clock of a process stands beside the last moment that a snapshot knows of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct ClockCorrection {
    now: Timestamp,
    /// How far the clock is behind that moment; zero where time has gone on.
    pub(super) behind: Duration,
}

impl ClockCorrection {
    /// `written_ahead`: how far the wall clock is behind the last write of the file.
    pub(super) fn of(
        content: &SnapshotContent,
        sessions: &[KnownSession],
        written_ahead: Duration,
        now: Timestamp,
    ) -> Self {
        let moments = content.bans.iter().map(SavedBan::since).chain(sessions.iter().map(|known| known.used));
        let last = moments.max().unwrap_or(now);
        Self { now, behind: last.since(now).max(written_ahead) }
    }

    /// Moves what is to come as far back as the clock is, so that a ban of a minute lasts no longer than a minute, whatever
    /// the clock shows now or showed then.
    pub(super) fn apply(self, content: &mut SnapshotContent, sessions: &mut [KnownSession]) {
        for ban in &mut content.bans {
            ban.correct(self.now, self.behind);
        }
        if self.behind.is_zero() {
            return;
        }
        for until in content.known.iter_mut().flat_map(|(_, clients)| clients).map(|(_, until)| until) {
            *until = self.earlier(*until);
        }
        for known in sessions {
            known.used = self.earlier(known.used).min(self.now);
        }
    }

    fn earlier(self, moment: Timestamp) -> Timestamp {
        Timestamp::EPOCH + moment.since(Timestamp::EPOCH).saturating_sub(self.behind)
    }
}
