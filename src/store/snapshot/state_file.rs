//! The file on disk: begun with the whole state, and appended to with what has changed.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::frame::Salt;
use crate::store::bans::ban::BanRecord;
use crate::store::bans::codec::SavedBan;
use crate::store::memory::{ChangeMark, MemoryStore};
use crate::store::sessions::codec::KnownSession;
use crate::store::snapshot::frame;
use crate::store::snapshot::frame::Record;
use crate::store::snapshot::writer::seeds_of;
use crate::words::clock::Timestamp;
use crate::words::files;

/// The file, which this process has begun and alone appends to.
#[derive(Debug)]
pub(super) struct StateFile {
    file: File,
    salt: Salt,
    length: u64,
    /// How much of it is the state at the time it was begun.
    whole: u64,
    begun: Timestamp,
    /// The changes that it has.
    mark: ChangeMark,
    /// How far the wall clock is ahead of the clock of the store, in microseconds. The file has moments of the wall clock, by
    /// which the next process goes.
    correction: i64,
}

/// Clocks are adjusted by less than this all the time, in microseconds.
const NOTABLE: u64 = 5_000_000;

/// A file is begun anew when more than the size of the whole state, and at least this, was appended to it. Beginning anew then
/// costs no more than appending did.
pub(super) const MIN_APPENDED: u64 = 256 << 10;

/// A file is begun anew after this time, so that it does not keep for longer what has ended.
const LONGEST: Duration = Duration::from_secs(86_400);

/// A frame is written when it has this many bytes.
const FRAME: usize = 32 << 10;

/// Why a snapshot could not be written, found without writing it.
pub fn check_writable(path: &Path) -> io::Result<()> {
    files::check_regular_or_absent(path)?;
    files::check_folder_writable(path)
}

impl StateFile {
    /// Writes the whole state to a new file, which takes the place of the old one in one step, so that a reader sees
    /// either of them. Nobody else has the new one: neither a process that this one took over from, nor one that failed to
    /// take over, can write into it.
    pub(super) fn begin(path: &Path, store: &MemoryStore) -> io::Result<Self> {
        check_writable(path)?;
        if is_of_another(path) {
            return Err(io::Error::new(
                io::ErrorKind::ResourceBusy,
                "another gateway writes it, and each would overwrite what the other wrote: give each a file of its own",
            ));
        }
        let draft = beside(path, ".new");
        match fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let begun = Self::write_draft(&draft, path, store);
        if begun.is_err() {
            // It would take the room that may be missing.
            drop(fs::remove_file(&draft));
        }
        begun
    }

    fn write_draft(draft: &Path, path: &Path, store: &MemoryStore) -> io::Result<Self> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(draft)?;
        // A file system without locks is as good as one where nobody else writes.
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        let correction = correction_of(store);
        let salt = Salt::random();
        let header = frame::write(salt);
        file.write_all(&header)?;
        // Changes that come while the state is written are appended afterwards, whether or not it has them already.
        let mark = store.watch_changes();
        let mut frames = Frames::new(&mut file, salt, header.len() as u64, correction);
        write_state(store, &mark, &mut frames)?;
        let length = frames.finish()?;
        file.sync_all()?;
        fs::rename(draft, path)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder)?.sync_all()?;
        Ok(Self { file, salt, length, whole: length, begun: store.clock().now(), mark, correction })
    }

    /// Whether there are changes that it does not have, or the wall clock was corrected.
    pub(super) fn is_behind(&self, store: &MemoryStore) -> bool {
        self.mark != store.change_mark() || self.has_other_time(store)
    }

    fn has_other_time(&self, store: &MemoryStore) -> bool {
        correction_of(store).abs_diff(self.correction) >= NOTABLE
    }

    /// Whether it is to be begun anew, with the changes that it does not have.
    pub(super) fn is_over(&self, path: &Path, store: &MemoryStore, min_appended: u64) -> bool {
        let appended = self.length - self.whole;
        let age = store.clock().now().since(self.begun);
        let is_long = appended > self.whole.max(min_appended) || age >= LONGEST;
        is_long || self.has_other_time(store) || !self.is_in_place(path)
    }

    /// Whether it is as this process has left it, under this name.
    fn is_in_place(&self, path: &Path) -> bool {
        let (Ok(here), Ok(there)) = (self.file.metadata(), fs::metadata(path)) else { return false };
        (here.dev(), here.ino()) == (there.dev(), there.ino()) && here.len() == self.length
    }

    /// Appends what has changed, and returns when it is on disk. `false`: it is no longer known what has changed, so that
    /// the file is to be begun anew. After an error too, because nobody knows what is on disk then.
    pub(super) fn append(&mut self, store: &MemoryStore) -> io::Result<bool> {
        let mark = store.change_mark();
        let Some(changes) = store.changes_since(&self.mark) else { return Ok(false) };
        let mut frames = Frames::new(&mut self.file, self.salt, self.length, self.correction);
        for id in changes.bans.removed {
            frames.write(&Record::NoBan(id))?;
        }
        for record in changes.bans.written {
            frames.write_ban(&record)?;
        }
        if changes.has_new_key {
            frames.write(&Record::Seeds(seeds_of(store)))?;
        }
        for (session, known) in changes.sessions {
            match known {
                Some(known) => frames.write_session(known)?,
                None => frames.write(&Record::NoSession(session))?,
            }
        }
        write_known_clients(store, &self.mark, &mark, &mut frames)?;
        let length = frames.finish()?;
        if length != self.length {
            self.file.sync_data()?;
        }
        (self.length, self.mark) = (length, mark);
        Ok(true)
    }

    /// How many bytes it has.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Nothing can be written from now on.
    #[cfg(test)]
    pub(super) fn break_handle(&mut self) {
        let handle = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&self.file));
        self.file = File::open(handle).expect("it is open");
    }
}

fn correction_of(store: &MemoryStore) -> i64 {
    let correction = store.clock().correction();
    if correction.unsigned_abs() < NOTABLE { 0 } else { correction }
}

fn write_state(store: &MemoryStore, mark: &ChangeMark, frames: &mut Frames<'_>) -> io::Result<()> {
    frames.write(&Record::Secret(store.secret()))?;
    // In a frame of its own, because nothing can be read without it.
    frames.end_frame()?;
    frames.write(&Record::Seeds(seeds_of(store)))?;
    for record in store.bans().records() {
        frames.write_ban(&record)?;
    }
    for known in store.lasting_sessions() {
        frames.write_session(known)?;
    }
    write_known_clients(store, &ChangeMark::default(), mark, frames)?;
    frames.write(&Record::Whole)
}

fn write_known_clients(
    store: &MemoryStore,
    since: &ChangeMark,
    until: &ChangeMark,
    frames: &mut Frames<'_>,
) -> io::Result<()> {
    for (subject, mut clients) in store.known_clients_between(since, until) {
        for (_, until) in &mut clients {
            *until = until.shifted(frames.correction);
        }
        frames.write(&Record::KnownClients(subject, clients))?;
    }
    Ok(())
}

/// Writes records in frames.
struct Frames<'f> {
    file: &'f mut File,
    salt: Salt,
    /// Where the next frame begins.
    offset: u64,
    payload: Vec<u8>,
    frame: Vec<u8>,
    /// See [`StateFile`].
    correction: i64,
}

impl<'f> Frames<'f> {
    fn new(file: &'f mut File, salt: Salt, offset: u64, correction: i64) -> Self {
        Self { file, salt, offset, payload: Vec::new(), frame: Vec::new(), correction }
    }

    fn write_ban(&mut self, record: &BanRecord) -> io::Result<()> {
        self.write(&Record::Ban(record.ban.id, SavedBan::of(record).shifted(self.correction)))
    }

    fn write_session(&mut self, known: KnownSession) -> io::Result<()> {
        let used = known.used.shifted(self.correction);
        self.write(&Record::Session(KnownSession { used, ..known }))
    }

    fn write(&mut self, record: &Record) -> io::Result<()> {
        record.write(&mut self.payload);
        if self.payload.len() < FRAME { Ok(()) } else { self.end_frame() }
    }

    fn end_frame(&mut self) -> io::Result<()> {
        if self.payload.is_empty() {
            return Ok(());
        }
        self.salt.write_frame(self.offset, &self.payload, &mut self.frame);
        self.file.write_all(&self.frame)?;
        self.offset += self.frame.len() as u64;
        self.payload.clear();
        self.frame.clear();
        Ok(())
    }

    /// Returns the length of the file.
    fn finish(mut self) -> io::Result<u64> {
        self.end_frame()?;
        Ok(self.offset)
    }
}

/// Whether another process that runs writes the file. Each has its own locked.
fn is_of_another(path: &Path) -> bool {
    let Ok(file) = files::open(path) else { return false };
    flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK)
}

pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}
