//! Notes the lines of a head in the table of its fields.

use std::ops::Range;

use memchr::memchr;

use crate::head::Fields;

/// Why lines are not the fields of a head.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InvalidLines {
    /// A line is not a field, or its CR has no LF.
    Malformed,
    TooMany,
}

/// Notes each line of `read` from `at` on as a field, up to the empty line, and returns where that ends. `None`: the empty line is
/// not there yet. Names are checked. The bytes of values are not: the caller does that for all lines at once.
pub fn note_lines(fields: &mut Fields, read: &[u8], mut at: usize, most: usize) -> Result<Option<usize>, InvalidLines> {
    loop {
        let Some(end) = line_end(read, at)? else { return Ok(None) };
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

/// Where the line that begins at `at` ends, before its CR LF. `None`: the line is not complete.
pub fn line_end(read: &[u8], at: usize) -> Result<Option<usize>, InvalidLines> {
    let Some(length) = memchr(b'\r', &read[at..]) else { return Ok(None) };
    match read.get(at + length + 1) {
        Some(b'\n') => Ok(Some(at + length)),
        Some(_) => Err(InvalidLines::Malformed),
        None => Ok(None),
    }
}

/// The value in what stands behind a colon.
fn without_blanks(value: &[u8]) -> Range<usize> {
    // As nearly everybody writes it.
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

/// What ends every line.
pub const LINE_END: &[u8] = b"\r\n";
