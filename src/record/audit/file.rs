//! A file of JSON lines, appended to wherever its name leads at the moment.

use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::MODE;
use super::clerk::Book;
use crate::files::AppendFile;
use crate::record::event::Event;

#[derive(Debug)]
pub(super) struct Pages {
    path: PathBuf,
    file: AppendFile,
    /// A write broke off within a line.
    is_torn: bool,
    lines: Vec<u8>,
}

impl Pages {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = AppendFile::open(path, MODE)?;
        Ok(Self { path: path.to_owned(), file, is_torn: false, lines: Vec::new() })
    }

    /// Rotated away, the name leads to another file, or to none yet.
    fn follow(&mut self) -> io::Result<()> {
        if !self.file.is_at(&self.path) {
            *self = Self::open(&self.path)?;
        }
        Ok(())
    }
}

impl Book for Pages {
    fn write(&mut self, entries: &[Arc<Event>]) -> io::Result<()> {
        self.follow()?;
        self.lines.clear();
        if self.is_torn {
            self.lines.push(b'\n');
        }
        for event in entries {
            self.lines.extend_from_slice(event.to_json().as_bytes());
            self.lines.push(b'\n');
        }
        let written = self.file.write(&self.lines, PATIENCE);
        self.is_torn = written.is_err();
        written
    }
}

/// How long a reader of a FIFO may pause. The queue has room for what comes meanwhile.
const PATIENCE: Duration = Duration::from_secs(1);
