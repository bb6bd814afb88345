//! The lines of a file, within a bound.

use std::fmt;
use std::io;
use std::io::BufRead;

use memchr::memchr;

use crate::replay::formats::MAX_LINE;

/// Reads lines into one buffer.
pub(super) struct Lines {
    input: Box<dyn BufRead>,
    line: Vec<u8>,
    /// Of the line in the buffer, from 1.
    pub(super) number: u64,
}

/// What was read.
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

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

#[cfg(test)]
mod tests {
    use std::io::BufReader;
    use std::io::Cursor;

    use super::*;

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
