//! A file of JSON lines, appended to wherever its name leads at the moment.

use std::fs;
use std::fs::File;
use std::fs::OpenOptions;
use std::io;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use super::clerk::Book;
use crate::record::happening::Happening;

#[derive(Debug)]
pub(super) struct Pages {
    path: PathBuf,
    file: File,
    /// Device and number: what tells a file from another of its name.
    identity: (u64, u64),
    /// A write broke off within a line.
    is_torn: bool,
    lines: Vec<u8>,
}

impl Pages {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        // Who may read the logs of a service is its group.
        let file = OpenOptions::new().append(true).create(true).mode(0o640).open(path)?;
        let identity = identity(&file.metadata()?);
        Ok(Self { path: path.to_owned(), file, identity, is_torn: false, lines: Vec::new() })
    }

    /// Rotated away, the name leads to another file, or to none yet.
    fn follow(&mut self) -> io::Result<()> {
        let is_same = fs::metadata(&self.path).is_ok_and(|found| identity(&found) == self.identity);
        if !is_same {
            *self = Self::open(&self.path)?;
        }
        Ok(())
    }
}

impl Book for Pages {
    fn write(&mut self, entries: &[Arc<Happening>]) -> io::Result<()> {
        self.follow()?;
        self.lines.clear();
        if self.is_torn {
            self.lines.push(b'\n');
        }
        for happening in entries {
            self.lines.extend_from_slice(happening.to_json().as_bytes());
            self.lines.push(b'\n');
        }
        let written = self.file.write_all(&self.lines);
        self.is_torn = written.is_err();
        written
    }
}

fn identity(metadata: &fs::Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}
