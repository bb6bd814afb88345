//! Opens a log, which may be compressed with gzip or zstd. Its first bytes decide, not its name.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, ErrorKind, Read};
use std::rc::Rc;
use std::sync::Arc;
use std::{fmt, io};

use flate2::bufread::MultiGzDecoder;
use memchr::memchr;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use serde::Serialize;

use crate::replay::formats::{MAX_LINE, begins_with_addresses};
use crate::words::secret;

/// The file name that stands for standard input.
pub(super) const STANDARD_INPUT: &str = "-";

const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

const BUFFER: usize = 64 * 1024;

/// An open log, and the length of its file in bytes; 0 where that is unknown.
pub(super) type OpenLog = (Box<dyn BufRead>, u64);

/// Opens a file, or standard input for `-`. Adds the number of bytes that were read to `read`. A FIFO is waited for.
pub(super) fn open(name: &str, read: &Rc<Cell<u64>>) -> io::Result<OpenLog> {
    let (input, length): (Box<dyn Read>, u64) = if name == STANDARD_INPUT {
        (Box::new(io::stdin().lock()), 0)
    } else {
        let file = File::open(name)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::Error::from(ErrorKind::IsADirectory));
        }
        let length = metadata.len();
        (Box::new(file), length)
    };
    Ok((decompressed(CountingReader::new(input, Rc::clone(read)))?, length))
}

fn decompressed(mut input: impl Read + 'static) -> io::Result<Box<dyn BufRead>> {
    let mut magic = Vec::with_capacity(4);
    input.by_ref().take(4).read_to_end(&mut magic)?;
    let is_gzip = magic.starts_with(&[0x1f, 0x8b]);
    let is_zstd = magic == ZSTD || matches!(magic[..], [0x50..=0x5f, 0x2a, 0x4d, 0x18]);
    let input = BufReader::with_capacity(BUFFER, Cursor::new(magic).chain(input));
    Ok(match (is_gzip, is_zstd) {
        (true, _) => {
            Box::new(BufReader::with_capacity(BUFFER, Decoder { input: MultiGzDecoder::new(input), name: "gzip" }))
        }
        (_, true) => {
            Box::new(BufReader::with_capacity(BUFFER, Decoder { input: ZstdFrames::new(input), name: "zstd" }))
        }
        _ => Box::new(input),
    })
}

/// Says plainly that compressed data is broken: the decoders speak of their insides.
struct Decoder<R> {
    input: R,
    name: &'static str,
}

impl<R: Read> Read for Decoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.input.read(buffer).map_err(|error| match error.raw_os_error() {
            Some(_) => error,
            None => io::Error::new(ErrorKind::InvalidData, format!("its {} data is broken or cut off", self.name)),
        })
    }
}

// Decompresses zstd: one frame after another, as `zstd` and `cat` write them.

/// The window that `zstd -19` and `--long` need.
const MAX_WINDOW: u64 = 128 * 1024 * 1024;

pub(super) struct ZstdFrames<R> {
    source: R,
    decoder: FrameDecoder,
    is_in_frame: bool,
}

impl<R> ZstdFrames<R> {
    pub(super) fn new(source: R) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MAX_WINDOW);
        Self { source, decoder, is_in_frame: false }
    }
}

impl<R: BufRead> ZstdFrames<R> {
    /// `false`: there is no other frame.
    fn begin_frame(&mut self) -> io::Result<bool> {
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    io::copy(&mut self.source.by_ref().take(length.into()), &mut io::sink())?;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.is_in_frame && !self.begin_frame()? {
                return Ok(0);
            }
            self.is_in_frame = true;
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                self.decoder
                    .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1))
                    .map_err(io::Error::other)?;
            }
            let length = self.decoder.read(buffer)?;
            if length > 0 || buffer.is_empty() {
                return Ok(length);
            }
            self.is_in_frame = false;
        }
    }
}

impl<R> fmt::Debug for ZstdFrames<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZstdFrames").field("is_in_frame", &self.is_in_frame).finish_non_exhaustive()
    }
}

// Counts the bytes of a file that were read, for the progress.

#[derive(Debug)]
pub(super) struct CountingReader<R> {
    input: R,
    read: Rc<Cell<u64>>,
}

impl<R> CountingReader<R> {
    /// Adds to `read`.
    pub(super) fn new(input: R, read: Rc<Cell<u64>>) -> Self {
        Self { input, read }
    }
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(buffer)?;
        self.read.set(self.read.get() + length as u64);
        Ok(length)
    }
}

// The lines of a file, within a bound.

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Reads lines into one buffer.
pub(super) struct Lines {
    input: Box<dyn BufRead>,
    line: Vec<u8>,
    /// The number of the line in the buffer, from 1.
    pub(super) number: u64,
}

/// The result of a read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum NextLine<'l> {
    Line(&'l [u8]),
    /// Its start. The rest was skipped.
    TooLong(&'l [u8]),
    End,
}

impl Lines {
    pub(super) fn new(input: Box<dyn BufRead>) -> Self {
        Self { input, line: Vec::new(), number: 0 }
    }

    /// The next line, without its end.
    pub(super) fn next(&mut self) -> io::Result<NextLine<'_>> {
        self.line.clear();
        let (mut is_too_long, mut has_any) = (false, false);
        loop {
            let part = self.input.fill_buf()?;
            if part.is_empty() {
                break;
            }
            has_any = true;
            let end = memchr(b'\n', part);
            let text = &part[..end.unwrap_or(part.len())];
            let room = MAX_LINE - self.line.len();
            is_too_long |= text.len() > room;
            self.line.extend_from_slice(&text[..text.len().min(room)]);
            let used = end.map_or(part.len(), |end| end + 1);
            self.input.consume(used);
            if end.is_some() {
                break;
            }
        }
        if !has_any {
            return Ok(NextLine::End);
        }
        self.number += 1;
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        // Editors of Windows begin a file with it.
        let line = if self.number == 1 { line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line) } else { line };
        Ok(if is_too_long { NextLine::TooLong(line) } else { NextLine::Line(line) })
    }
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").field("number", &self.number).finish_non_exhaustive()
    }
}

// A line that is of no known format.

const SCHEMES: [&str; 3] = ["Bearer", "Basic", "Token"];

/// Longer than the start of a line with the URL of any ordinary request.
const MASKED_BYTES: usize = 8 * 1024;

const SHOWN_LETTERS: usize = 120;

/// A line that could not be read.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct UnreadableLine {
    pub file: Arc<str>,
    /// From 1.
    pub line: u64,
    /// Its start, with everything escaped that is not plain text, and without what may be a secret.
    pub text: String,
}

/// The start of a line, in which nothing moves a terminal's cursor, and no secret stands.
pub(super) fn shown(line: &[u8]) -> String {
    // It is masked before it is cut: half of a secret is not recognized as one.
    let text = String::from_utf8_lossy(&line[..line.len().min(MASKED_BYTES)]);
    let text = without_credentials(&secret::hidden(&text));
    let mut shown: String = text.chars().take(SHOWN_LETTERS).collect::<String>().escape_debug().to_string();
    if text.chars().nth(SHOWN_LETTERS).is_some() || line.len() > MASKED_BYTES {
        shown.push_str("...");
    }
    shown
}

/// Masks the values of queries, where tokens stand, and what follows the name of a scheme of `Authorization`.
fn without_credentials(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut is_credential = false;
    for word in text.split_inclusive(|letter: char| letter.is_whitespace() || letter == '"') {
        let (value, end) = word.split_at(word.trim_end_matches(|c: char| c.is_whitespace() || c == '"').len());
        if value.is_empty() {
            shown.push_str(end);
            continue;
        }
        match value.split_once('?') {
            _ if is_credential => shown.push_str(secret::MASK),
            Some((path, query)) if !query.is_empty() => {
                shown.push_str(path);
                shown.push('?');
                shown.push_str(secret::MASK);
            }
            _ => shown.push_str(value),
        }
        is_credential = SCHEMES.iter().any(|scheme| value.eq_ignore_ascii_case(scheme));
        shown.push_str(end);
    }
    shown
}

// Why a log cannot be read.

/// The help for a line that begins with a list of addresses.
pub(in crate::replay) const SEVERAL_ADDRESSES: &str = "a line that begins with several addresses does not say which of \
     them is the client: let the proxy log the one that it has found";

/// Why a log cannot be read. Files are named as they were on the command line.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("{file}: cannot open it: {error}")]
    Open { file: Arc<str>, error: io::Error },
    #[error("{file}: standard input is one log, and can be read once")]
    Twice { file: Arc<str> },
    #[error("{file}:{line}: cannot read on: {error}")]
    Read { file: Arc<str>, line: u64, error: io::Error },
    /// No line is of a known format. These are the first ones.
    #[error(
        "{}\nname the format with --log-format, or the fields of JSON with --fields{}",
        listed(.lines, "an access log that portcullis knows"),
        addresses_hint(.lines)
    )]
    UnknownFormat { lines: Vec<UnreadableLine> },
    #[error("{}{}", listed(.lines, "the format that --log-format names"), addresses_hint(.lines))]
    OtherFormat { lines: Vec<UnreadableLine> },
    /// The fields that the operator has named are in no line.
    #[error(
        "{file}:1: --fields names the fields of JSON lines, but the lines are of the format {format}, which has none of \
         these names: correct the names, or leave out --fields"
    )]
    UnusedFields { file: Arc<str>, format: &'static str },
    #[error("{file}:1: there is no line")]
    Empty { file: Arc<str> },
    #[error("{file}:{line}: no line up to here holds a request")]
    NoRequest { file: Arc<str>, line: u64 },
}

/// One below the other, each with its file and number.
fn listed(lines: &[UnreadableLine], format: &str) -> String {
    let lines = lines.iter().enumerate().map(|(place, UnreadableLine { file, line, text })| match place {
        0 => format!("{file}:{line}: this is no line of {format}: {text}"),
        _ => format!("{file}:{line}: nor is this: {text}"),
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn addresses_hint(lines: &[UnreadableLine]) -> String {
    let has_addresses = lines.iter().any(|line| begins_with_addresses(&line.text));
    if has_addresses { format!("\n{SEVERAL_ADDRESSES}") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Cursor};

    use super::*;

    #[test]
    fn the_start_of_a_line_shows_no_secret() {
        for (line, expected) in [
            ("GET /a?token=s3cret HTTP/1.1", "GET /a?*** HTTP/1.1"),
            ("https://u:s3cret@h/a?b=s3cret", "https://***@h/a?***"),
            ("\"Bearer s3cret\" \"/a?b\"", "\\\"Bearer ***\\\" \\\"/a?***\\\""),
            ("is it? so", "is it? so"),
        ] {
            assert_eq!(shown(line.as_bytes()), expected);
        }
        let long = format!("{}http://user:{}@h", "x".repeat(100), "s3cret".repeat(100));
        assert_eq!(shown(long.as_bytes()), format!("{}http://***@h", "x".repeat(100)));
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_line() {
        let text = "\u{feff}one\n\u{feff}two";
        let mut lines = Lines::new(Box::new(Cursor::new(text)));
        assert_eq!(lines.next().unwrap(), NextLine::Line(b"one"));
        assert_eq!(lines.next().unwrap(), NextLine::Line("\u{feff}two".as_bytes()));
    }

    #[test]
    fn lines_end_with_the_file_too_and_long_ones_are_skipped() {
        let mut text = b"one\r\n\n".to_vec();
        text.extend(vec![b'x'; MAX_LINE + 1]);
        text.extend_from_slice(b"\nlast");
        let mut lines = Lines::new(Box::new(BufReader::with_capacity(7, Cursor::new(text))));
        assert_eq!(lines.next().unwrap(), NextLine::Line(b"one"));
        assert_eq!(lines.next().unwrap(), NextLine::Line(b""));
        assert!(matches!(lines.next().unwrap(), NextLine::TooLong(start) if start.len() == MAX_LINE));
        assert_eq!(lines.next().unwrap(), NextLine::Line(b"last"));
        assert_eq!(lines.next().unwrap(), NextLine::End);
        assert_eq!(lines.number, 4);
    }
}
