//! The requests of one log file.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use serde::Serialize;

use super::{ReadError, decompress};
use crate::replay::input::decompress::{Lines, NextLine, UnreadableLine};
use crate::replay::{FieldNames, LineContent, LineFormat, LineReader, LogFormat, LogLine, LoggedRequest};
use crate::words::clock::Timestamp;

/// A log file that is being read.
#[derive(Debug)]
pub(super) struct LogFile {
    name: Arc<str>,
    lines: Lines,
    reader: LineReader,
    /// Requests that were read ahead.
    ahead: VecDeque<LoggedRequest>,
    is_read: bool,
    pub(super) counts: LineCounts,
    /// The length of the file in bytes; 0 where that is unknown.
    pub(super) length: u64,
}

/// The numbers of lines of a log by their kind.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LineCounts {
    /// All lines that are not empty. What a container has split is one.
    pub lines: u64,
    /// Lines that were understood and hold no request that rules could see.
    pub without_request: u64,
    /// Lines of calls about descriptors, which the log does not hold.
    pub descriptor_calls: u64,
    pub unreadable: u64,
    /// The first of them.
    pub first_unreadable: Vec<UnreadableLine>,
    /// The files with lines that cannot be read.
    pub by_file: Vec<UnreadableInFile>,
    /// The files whose lines are all unreadable.
    pub unreadable_files: Vec<Arc<str>>,
}

/// How many lines of a file cannot be read.
#[derive(Clone, Debug, Serialize)]
pub struct UnreadableInFile {
    /// All lines that are not empty.
    pub lines: u64,
    pub unreadable: u64,
    pub first: UnreadableLine,
}

impl LogFile {
    /// Opens a file and finds out its format. Adds to `read` the bytes that are read of it.
    pub(super) fn open(
        name: &str,
        format: LogFormat,
        fields: &FieldNames,
        read: &Rc<Cell<u64>>,
    ) -> Result<Self, ReadError> {
        let name: Arc<str> = name.into();
        let (input, length) =
            decompress::open(&name, read).map_err(|error| ReadError::Open { file: Arc::clone(&name), error })?;
        let mut file = Self {
            name,
            lines: Lines::new(input),
            reader: LineReader::new(format, fields),
            ahead: VecDeque::new(),
            is_read: false,
            counts: LineCounts::default(),
            length,
        };
        file.read_ahead()?;
        Ok(file)
    }

    /// `None`: no line can be read, or the file is empty.
    pub(super) fn format(&self) -> Option<LineFormat> {
        self.reader.format
    }

    /// When the next request began.
    pub(super) fn next_start(&self) -> Option<Timestamp> {
        self.ahead.front().map(|request| request.started)
    }

    /// The requests that were read when the file was opened: a sample of what the log holds.
    pub(super) fn sample(&self) -> impl Iterator<Item = &LoggedRequest> {
        self.ahead.iter()
    }

    /// The next request, in the order of the file.
    pub(super) fn next(&mut self) -> Result<Option<LoggedRequest>, ReadError> {
        if let Some(request) = self.ahead.pop_front() {
            if self.ahead.is_empty() {
                let next = self.read_request()?;
                self.ahead.extend(next);
            }
            return Ok(Some(request));
        }
        self.read_request()
    }

    fn read_ahead(&mut self) -> Result<(), ReadError> {
        let is_known = self.detect()?;
        let mut sampled = 0;
        while is_known && (sampled < SAMPLE || self.ahead.is_empty()) && self.ahead.len() < SAMPLE {
            sampled += 1;
            match self.read_next()? {
                LineRead::End => break,
                LineRead::Nothing => {}
                LineRead::Read(request) => self.ahead.push_back(request),
            }
        }
        if self.format().is_none() && self.counts.lines > 0 {
            self.counts.unreadable_files.push(Arc::clone(&self.name));
        }
        Ok(())
    }

    /// Reads to the first line of a known format. `false`: there is none in the whole file.
    fn detect(&mut self) -> Result<bool, ReadError> {
        while self.format().is_none() {
            match self.read_next()? {
                LineRead::End => return Ok(self.format().is_some()),
                LineRead::Nothing => {}
                LineRead::Read(request) => self.ahead.push_back(request),
            }
        }
        Ok(true)
    }

    /// The request of the next line.
    fn read_next(&mut self) -> Result<LineRead<LoggedRequest>, ReadError> {
        Ok(match self.read_line()? {
            LineRead::End => LineRead::End,
            LineRead::Nothing => LineRead::Nothing,
            LineRead::Read(read) => self.counts.request_of(read).map_or(LineRead::Nothing, LineRead::Read),
        })
    }

    fn read_request(&mut self) -> Result<Option<LoggedRequest>, ReadError> {
        loop {
            match self.read_next()? {
                LineRead::End => return Ok(None),
                LineRead::Nothing => {}
                LineRead::Read(request) => return Ok(Some(request)),
            }
        }
    }

    /// Reads the next line, and counts it.
    fn read_line(&mut self) -> Result<LineRead<LogLine>, ReadError> {
        if self.is_read {
            return Ok(LineRead::End);
        }
        let mut number = self.lines.number + 1;
        let next =
            self.lines.next().map_err(|error| ReadError::Read { file: Arc::clone(&self.name), line: number, error })?;
        let content = match next {
            NextLine::End => {
                let Some(rest) = self.reader.rest() else {
                    self.is_read = true;
                    return Ok(LineRead::End);
                };
                number -= 1;
                rest
            }
            NextLine::Line(b"") => return Ok(LineRead::Nothing),
            NextLine::Line(line) => self.reader.read(line),
            NextLine::TooLong(line) => LineContent::Unreadable(Cow::Borrowed(line)),
        };
        let unreadable = match content {
            LineContent::Piece => return Ok(LineRead::Nothing),
            LineContent::Line(read) => {
                self.counts.lines += 1;
                return Ok(LineRead::Read(read));
            }
            LineContent::Unreadable(text) => text,
        };
        self.counts.lines += 1;
        self.counts.unreadable += 1;
        if self.counts.first_unreadable.len() < SHOWN {
            let text = decompress::shown(&unreadable);
            self.counts.first_unreadable.push(UnreadableLine { file: Arc::clone(&self.name), line: number, text });
        }
        Ok(LineRead::Nothing)
    }

    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The number of the line that was read last, from 1.
    pub(super) fn line(&self) -> u64 {
        self.lines.number
    }
}

enum LineRead<T> {
    End,
    /// A line without a request, or one that cannot be read.
    Nothing,
    Read(T),
}

impl LineCounts {
    /// The request of a line, or `None`: then the line is counted.
    fn request_of(&mut self, read: LogLine) -> Option<LoggedRequest> {
        match read {
            LogLine::Request(request) => return Some(request),
            LogLine::NoRequest => self.without_request += 1,
            LogLine::Directive => {}
            LogLine::DescriptorCall => self.descriptor_calls += 1,
        }
        None
    }

    /// Adds what the lines of one file were.
    pub(super) fn add(&mut self, other: &Self) {
        self.lines += other.lines;
        self.without_request += other.without_request;
        self.descriptor_calls += other.descriptor_calls;
        self.unreadable += other.unreadable;
        self.unreadable_files.extend(other.unreadable_files.iter().cloned());
        let room = SHOWN - self.first_unreadable.len();
        self.by_file.extend(other.first_unreadable.first().map(|first| UnreadableInFile {
            lines: other.lines,
            unreadable: other.unreadable,
            first: first.clone(),
        }));
        self.first_unreadable.extend(other.first_unreadable.iter().take(room).cloned());
    }
}

/// How many lines decide about the format of a file, and about what it holds.
const SAMPLE: usize = 1000;

/// How many unreadable lines are shown.
const SHOWN: usize = 5;
