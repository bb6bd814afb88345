//! A file of JSON lines. When it is rotated away, a new one is begun at its path.

use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::writer::AuditSink;
use crate::files::AppendFile;
use crate::record::Event;

/// Of a new audit file: the group of the service may read it, as it may read logs.
pub(super) const MODE: u32 = 0o640;

#[derive(Debug)]
pub(super) struct AuditFile {
    path: PathBuf,
    file: AppendFile,
    /// The last write failed within a line.
    is_torn: bool,
    lines: Vec<u8>,
}

impl AuditFile {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = AppendFile::open(path, MODE)?;
        Ok(Self { path: path.to_owned(), file, is_torn: false, lines: Vec::new() })
    }

    /// Why it could not be opened, found without opening it.
    pub(super) fn check(path: &Path) -> io::Result<()> {
        AppendFile::check(path)
    }

    /// Opens the path again where it names another file now, or none: the file was rotated away.
    fn reopen_if_rotated(&mut self) -> io::Result<()> {
        if !self.file.is_at(&self.path) {
            *self = Self::open(&self.path)?;
        }
        Ok(())
    }
}

impl AuditSink for AuditFile {
    fn write(&mut self, events: &[Arc<Event>]) -> io::Result<()> {
        self.reopen_if_rotated()?;
        self.lines.clear();
        if self.is_torn {
            self.lines.push(b'\n');
        }
        for event in events {
            self.lines.extend_from_slice(event.to_json().as_bytes());
            self.lines.push(b'\n');
        }
        let written = self.file.write(&self.lines, WRITE_TIMEOUT);
        self.is_torn = written.is_err();
        written
    }
}

/// How long the reader of a FIFO may pause. The queue has room for the events of that time.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);
