//! Reads the requests of several log files in the order of time.
//!
//! - [`decompress`]: opens a file, compressed or not, and reads its lines, within a bound.
//! - [`log_file`]: the requests of one file, and what could not be read.
//! - this file: the requests of all files in the order in which they began.

pub mod decompress;
pub mod log_file;

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::rc::Rc;
use std::sync::Arc;

pub use self::decompress::{ReadError, UnreadableLine};
use crate::replay::input::decompress::STANDARD_INPUT;
use crate::replay::input::log_file::{LineCounts, LogFile};
use crate::replay::{FieldNames, LineFormat, LogContents, LogFormat, LoggedRequest};
use crate::words::clock::Timestamp;

// The requests of several log files, in the order in which they began.
//
// A line is written when its request has ended, so a file is not quite in the order of the starts. Requests therefore
// wait in a heap of a bounded size. It is filled from the file that is furthest behind, so that files that follow
// each other are read one after another, and files of the same time together.

/// Enough for the requests that a busy proxy has under way at a time.
const MOST_WAITING: usize = 16_384;

/// Where lines are long, fewer wait.
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// Open log files.
#[derive(Debug)]
pub struct LogFiles {
    files: Vec<LogFile>,
    waiting: BinaryHeap<Waiting>,
    /// The memory of the requests in the heap, in bytes.
    size: usize,
    /// Requests with the same start keep the order in which they were read.
    number: u64,
    read: Rc<Cell<u64>>,
}

/// How far the files have been read.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    pub lines: u64,
    /// The size of the files as they are stored.
    pub bytes: u64,
    /// `None`: the length of a file is unknown.
    pub all_bytes: Option<u64>,
}

#[derive(Debug)]
struct Waiting {
    started: Timestamp,
    number: u64,
    request: LoggedRequest,
}

impl LogFiles {
    /// Opens all files and finds out their formats.
    pub fn open(names: &[String], format: LogFormat, fields: &FieldNames) -> Result<Self, ReadError> {
        if names.iter().filter(|name| *name == STANDARD_INPUT).count() > 1 {
            return Err(ReadError::Twice { file: STANDARD_INPUT.into() });
        }
        let read = Rc::new(Cell::new(0));
        let files =
            names.iter().map(|name| LogFile::open(name, format, fields, &read)).collect::<Result<Vec<_>, _>>()?;
        let opened = Self { files, waiting: BinaryHeap::new(), size: 0, number: 0, read };
        let known: Vec<_> = opened.files.iter().filter_map(|file| Some((file.name(), file.format()?))).collect();
        match known.first() {
            // A file without lines beside others is one that was just rotated; one that is no log does not hide the
            // others.
            None => Err(opened.nothing_read(format)),
            Some((file, format))
                if fields.is_any_named() && known.iter().all(|(_, format)| *format != LineFormat::Json) =>
            {
                Err(ReadError::UnusedFields { file: Arc::clone(file), format: format.as_str() })
            }
            Some(_) => Ok(opened),
        }
    }

    /// Why there is nothing to read in any file.
    fn nothing_read(&self, format: LogFormat) -> ReadError {
        let lines = self.counts().first_unreadable;
        match format {
            _ if lines.is_empty() => {
                ReadError::Empty { file: self.files.first().map_or("-".into(), |file| Arc::clone(file.name())) }
            }
            LogFormat::Auto => ReadError::UnknownFormat { lines },
            _ => ReadError::OtherFormat { lines },
        }
    }

    /// Fails where no line holds a request. To be called before the first request is taken.
    pub fn require_request(&self) -> Result<(), ReadError> {
        match self.files.first() {
            Some(first) if self.files.iter().all(|file| file.next_start().is_none()) => {
                Err(ReadError::NoRequest { file: first.name().clone(), line: first.line() })
            }
            _ => Ok(()),
        }
    }

    /// The data that all the logs have, judged by their first lines.
    pub fn contents(&self) -> LogContents {
        let files = self.files.iter().filter(|file| file.next_start().is_some());
        let contents = files.map(|file| LogContents::of(file.sample()));
        contents.reduce(|all, other| all.and(&other)).unwrap_or_default()
    }

    /// The formats of the files, each once.
    pub fn formats(&self) -> Vec<&'static str> {
        let mut formats = Vec::new();
        for format in self.files.iter().filter_map(LogFile::format) {
            if !formats.contains(&format.as_str()) {
                formats.push(format.as_str());
            }
        }
        formats
    }

    /// The request that began next. One whose line stands too far behind its place comes late.
    pub fn next_request(&mut self) -> Result<Option<LoggedRequest>, ReadError> {
        while self.waiting.len() < MOST_WAITING && self.size < MOST_BYTES {
            // The file that is furthest behind.
            let behind = self.files.iter_mut().filter(|file| file.next_start().is_some());
            let Some(file) = behind.min_by_key(|file| file.next_start()) else { break };
            let Some(request) = file.next()? else { break };
            self.size += request.size();
            self.number += 1;
            self.waiting.push(Waiting { started: request.started, number: self.number, request });
        }
        let next = self.waiting.pop().map(|waiting| waiting.request);
        self.size -= next.as_ref().map_or(0, LoggedRequest::size);
        Ok(next)
    }

    /// How many files there are.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    pub fn position(&self) -> Position {
        let lines = self.files.iter().map(|file| file.counts.lines).sum();
        let lengths = self.files.iter().map(|file| Some(file.length).filter(|length| *length > 0));
        Position { lines, bytes: self.read.get(), all_bytes: lengths.sum() }
    }

    /// The numbers of the lines that have been read, by their kind.
    pub fn counts(&self) -> LineCounts {
        let mut counts = LineCounts::default();
        self.files.iter().for_each(|file| counts.add(&file.counts));
        counts
    }
}

impl Ord for Waiting {
    /// The earliest is the greatest, because a heap gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.started, other.number).cmp(&(self.started, self.number))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Waiting {}
