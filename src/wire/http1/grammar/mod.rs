//! The shared parts of both sides of HTTP/1.1: the end of a head, fields, the framing of bodies, and the buffer for
//! output.

pub(crate) mod decoder;
mod encoder;

use std::ops::Range;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use memchr::memchr;
use wide::u8x16;

pub use self::decoder::{BodyDecoder, Sender};
pub use self::encoder::{BodyEncoder, BodyLength, WriteBuffer};
use crate::wire::head;
use crate::wire::head::Fields;

/// The end of every line.
pub const LINE_END: &[u8] = b"\r\n";

/// Why lines are not the fields of a head.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InvalidLines {
    /// A line is not a field, or has a control character that is neither a tab nor its end.
    Malformed,
    TooMany,
}

/// Notes each of the lines from `at` on as a field, up to the empty line, and returns where that ends. `None`: the empty line is
/// not there yet.
pub fn note_lines(
    fields: &mut Fields,
    lines: &mut Lines<'_>,
    mut at: usize,
    most: usize,
) -> Result<Option<usize>, InvalidLines> {
    loop {
        let Some(end) = lines.next_end()? else { return Ok(None) };
        let next = end + LINE_END.len();
        if end == at {
            return Ok(Some(next));
        }
        if fields.len() == most {
            return Err(InvalidLines::TooMany);
        }
        fields.note(at, end, next, without_blanks).map_err(|_| InvalidLines::Malformed)?;
        at = next;
    }
}

/// The value in what stands behind a colon.
fn without_blanks(value: &[u8]) -> Range<usize> {
    // The form that nearly all peers write.
    if let [b' ', first, .., last] = value
        && *first > b' '
        && *last > b' '
    {
        return 1..value.len();
    }
    let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
    let before = value.iter().take_while(is_blank).count();
    before..value.len() - value[before..].iter().rev().take_while(is_blank).count()
}

// Finds where the lines of a head end, in one pass that also finds the bytes that no line may have.

/// In bytes: what is searched at once, a bit for each byte.
const BLOCK: usize = u64::BITS as usize;

const DELETE: u8 = 0x7f;

/// The lines of a head, one after another. Each ends in CR LF, and has no control characters but tabs.
#[derive(Debug)]
pub struct Lines<'r> {
    read: &'r [u8],
    /// Where the block begins that is searched next.
    next: usize,
    /// The control characters of the block before it that were not met yet, a bit for each. The lowest bit is its first byte.
    controls: u64,
}

impl<'r> Lines<'r> {
    /// The lines that begin with the first of these bytes.
    pub fn of(read: &'r [u8]) -> Self {
        Self { read, next: 0, controls: 0 }
    }

    /// Where the next line ends, before its CR LF. `None`: it is not complete.
    #[inline]
    pub fn next_end(&mut self) -> Result<Option<usize>, InvalidLines> {
        if self.controls == 0 && !self.search() {
            return Ok(None);
        }
        let end = self.next - BLOCK + self.controls.trailing_zeros() as usize;
        match self.read[end..] {
            [b'\r', b'\n', ..] => {}
            [b'\r'] => return Ok(None),
            _ => return Err(InvalidLines::Malformed),
        }
        self.controls &= self.controls - 1;
        // The LF is the next control character, in this block or the one behind it.
        if self.controls != 0 || self.search() {
            self.controls &= self.controls - 1;
        }
        Ok(Some(end))
    }

    /// Searches on, up to a block with control characters. Returns whether there is one. Most blocks hold a line end or two: not
    /// inlined, so that the loop over lines is short.
    #[inline(never)]
    fn search(&mut self) -> bool {
        while self.next < self.read.len() {
            self.controls = controls(&self.read[self.next..]);
            self.next += BLOCK;
            if self.controls != 0 {
                return true;
            }
        }
        false
    }
}

/// The control characters but tabs among the first bytes, which are at least one.
fn controls(bytes: &[u8]) -> u64 {
    if let Some(block) = bytes.first_chunk() {
        return controls_of(block);
    }
    let mut padded = [b' '; BLOCK];
    padded[..bytes.len()].copy_from_slice(bytes);
    controls_of(&padded)
}

#[inline]
fn controls_of(block: &[u8; BLOCK]) -> u64 {
    let (parts, _) = block.as_chunks::<16>();
    let bits = parts.iter().map(|part| {
        let bytes = u8x16::from(*part);
        let is_low = bytes.min(u8x16::splat(b' ' - 1)).simd_eq(bytes);
        let is_tab = bytes.simd_eq(u8x16::splat(b'\t'));
        let is_delete = bytes.simd_eq(u8x16::splat(DELETE));
        ((is_low & !is_tab) | is_delete).to_bitmask()
    });
    bits.rev().fold(0, |all, part| all << 16 | u64::from(part))
}

// Finds the end of a head.

/// Looks for the end of a head, read by read.
///
/// Empty lines at the beginning are not the end. A line that ends in LF without CR is noted.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadScanner {
    /// The beginning of the current line.
    line: usize,
    /// The bytes before this were searched.
    seen: usize,
    /// There was a line that is not empty.
    has_begun: bool,
    has_bare_line_feed: bool,
}

impl HeadScanner {
    /// The length of the head, once it is complete. `read` has all bytes since its beginning.
    pub fn find_end(&mut self, read: &[u8]) -> Option<usize> {
        while let Some(length) = memchr(b'\n', &read[self.seen..]) {
            let feed = self.seen + length;
            let has_return = feed > self.line && read[feed - 1] == b'\r';
            self.has_bare_line_feed |= !has_return;
            let is_empty = feed - usize::from(has_return) == self.line;
            self.seen = feed + 1;
            self.line = self.seen;
            if is_empty && self.has_begun {
                return Some(self.seen);
            }
            self.has_begun |= !is_empty;
        }
        self.seen = read.len();
        None
    }

    /// Whether no bytes were searched yet.
    pub fn is_fresh(&self) -> bool {
        self.seen == 0
    }

    /// Whether a line ended in LF without CR.
    pub fn has_bare_line_feed(&self) -> bool {
        self.has_bare_line_feed
    }
}

// Comma-separated lists.

/// Whether a list has this element, in any case.
pub fn list_has(list: &[u8], element: &[u8]) -> bool {
    elements(list).any(|one| one.eq_ignore_ascii_case(element))
}

/// The elements of a list, without the blanks around them.
pub fn elements(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

// Parses and writes the fields of trailers.

/// The fields that were parsed from `lines`, in their order. The values share the memory of `lines`.
pub(super) fn read(lines: &Bytes, parsed: &[httparse::Header<'_>]) -> Result<HeaderMap, InvalidMessage> {
    let mut trailers = HeaderMap::new();
    for field in parsed {
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| InvalidMessage::Field)?;
        let value = HeaderValue::from_maybe_shared(lines.slice_ref(field.value)).map_err(|_| InvalidMessage::Field)?;
        trailers.try_append(name, value).map_err(|_| InvalidMessage::Field)?;
    }
    Ok(trailers)
}

/// Writes trailers, each on a line, without the empty line behind them.
pub(super) fn write(trailers: &HeaderMap, out: &mut WriteBuffer) {
    for (name, value) in trailers {
        head::write_line(name.as_str().as_bytes(), value.as_bytes(), out.small());
    }
}

// Why bytes are not HTTP/1.1.

/// The bytes that were read are not HTTP/1.1.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidMessage {
    #[error("the size of a chunk is not a number")]
    ChunkSize,
    #[error("a chunk does not end where its size says")]
    ChunkEnd,
    #[error("the chunk extensions are too long")]
    Extensions,
    #[error("a field is malformed")]
    Field,
    #[error("the trailers are too long")]
    Trailers,
}

/// The connection ended before the body did, or the body ended before its announced length.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the body is shorter than announced")]
pub struct IncompleteBody;

#[cfg(test)]
mod tests {
    use super::*;

    /// The outcome is the same for every split into two reads.
    #[track_caller]
    fn check(read: &str, end: Option<usize>, is_bare: bool) {
        for cut in 0..=read.len() {
            let mut scanner = HeadScanner::default();
            let found = scanner.find_end(&read.as_bytes()[..cut]).or_else(|| scanner.find_end(read.as_bytes()));
            assert_eq!((found, scanner.has_bare_line_feed()), (end, is_bare), "{read:?} cut at {cut}");
        }
    }

    #[test]
    fn a_head_ends_with_an_empty_line() {
        check("GET / HTTP/1.1\r\n\r\n", Some(18), false);
        check("GET / HTTP/1.1\r\nHost: a\r\n\r\nbody", Some(27), false);
        check("\r\n\r\nGET / HTTP/1.1\r\n\r\n", Some(22), false);
    }

    #[test]
    fn an_incomplete_head_has_no_end() {
        for head in ["", "\r\n", "\r\n\r\n", "GET / HTTP/1.1", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\n\r"] {
            check(head, None, false);
        }
    }

    #[test]
    fn bare_line_feeds_end_lines_and_are_noted() {
        check("HTTP/1.1 200 OK\n\n", Some(17), true);
        check("HTTP/1.1 200 OK\r\nA: b\n\r\n", Some(24), true);
        check("\nHTTP/1.1 200 OK\r\n\r\n", Some(20), true);
        check("HTTP/1.1 200 OK\r\nA: b\n", None, true);
    }

    /// What [`Lines`] finds, byte by byte.
    fn model(read: &[u8]) -> (Vec<usize>, bool) {
        let (mut ends, mut at) = (Vec::new(), 0);
        loop {
            let is_control = |byte: &u8| (*byte < b' ' && *byte != b'\t') || *byte == DELETE;
            let Some(length) = read[at..].iter().position(is_control) else { return (ends, true) };
            let end = at + length;
            match &read[end..] {
                [b'\r'] => return (ends, true),
                [b'\r', b'\n', ..] => ends.push(end),
                _ => return (ends, false),
            }
            at = end + LINE_END.len();
        }
    }

    fn found(read: &[u8]) -> (Vec<usize>, bool) {
        let (mut lines, mut ends) = (Lines::of(read), Vec::new());
        loop {
            match lines.next_end() {
                Ok(Some(end)) => ends.push(end),
                Ok(None) => return (ends, true),
                Err(_) => return (ends, false),
            }
        }
    }

    /// Every byte at every place of a line, and line ends on both sides of a border between blocks.
    #[test]
    fn lines_end_where_the_model_says() {
        for length in 0..2 * BLOCK + 3 {
            let blank = [vec![b'a'; length], b"\r\nb\r\n".to_vec()].concat();
            assert_eq!(found(&blank), model(&blank), "{length}");
            assert_eq!(found(&blank[..=length]), (vec![], true), "{length}");
            for byte in 0..=u8::MAX {
                let mut read = blank.clone();
                read[length / 2] = byte;
                assert_eq!(found(&read), model(&read), "{byte:#x} at {} of {length}", length / 2);
            }
        }
    }
}
