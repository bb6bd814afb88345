//! Texts of a line. Nearly all of them need no escape: that is found out many bytes at once, and then they are copied.

use std::fmt::Display;
use std::io::Write;

use crate::digits::HEX_PAIRS;

#[inline]
pub(in crate::record) fn raw(line: &mut Vec<u8>, text: &str) {
    line.extend_from_slice(text.as_bytes());
}

pub(in crate::record) fn put(line: &mut Vec<u8>, value: impl Display) {
    write!(line, "{value}").expect("writing to a vector does not fail");
}

/// Text as a JSON string.
#[inline]
pub(in crate::record) fn quoted(line: &mut Vec<u8>, value: &str) {
    line.push(b'"');
    escaped(line, value);
    line.push(b'"');
}

/// Text within a JSON string.
pub(in crate::record) fn escaped(line: &mut Vec<u8>, value: &str) {
    if any(value.as_bytes(), need_escape) {
        escape(line, value);
    } else {
        raw(line, value);
    }
}

/// Bytes within a JSON string. They need not be UTF-8.
pub(in crate::record) fn escaped_bytes(line: &mut Vec<u8>, value: &[u8]) {
    if !any(value, |word| need_escape(word) | not_ascii(word)) {
        return line.extend_from_slice(value);
    }
    for part in value.utf8_chunks() {
        escaped(line, part.valid());
        if !part.invalid().is_empty() {
            raw(line, "\u{fffd}");
        }
    }
}

/// Text in which control characters are escaped, so that it cannot move a terminal's cursor or begin another line.
pub(in crate::record) fn plain(line: &mut Vec<u8>, text: &str) {
    if any(text.as_bytes(), |word| below(word, b' ') | equal(word, 0x7f) | not_ascii(word)) {
        put(line, text.escape_debug());
    } else {
        raw(line, text);
    }
}

#[cold]
fn escape(line: &mut Vec<u8>, value: &str) {
    let mut rest = value.as_bytes();
    while let Some(at) = rest.iter().position(|byte| matches!(byte, 0..b' ' | b'"' | b'\\')) {
        line.extend_from_slice(&rest[..at]);
        let short = match rest[at] {
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0c => b'f',
            byte @ (b'"' | b'\\') => byte,
            _ => b'u',
        };
        line.extend_from_slice(&[b'\\', short]);
        if short == b'u' {
            raw(line, "00");
            line.extend_from_slice(&HEX_PAIRS[usize::from(rest[at])]);
        }
        rest = &rest[at + 1..];
    }
    line.extend_from_slice(rest);
}

/// Whether `find` sees a byte that it looks for. It gets eight at once, and sets the highest bit of each that it finds.
#[inline]
fn any(bytes: &[u8], find: impl Fn(u64) -> u64) -> bool {
    let find = |word: [u8; 8]| find(u64::from_le_bytes(word)) & HIGH_BITS;
    // The last chunk may overlap the others, which is cheaper than looking at single bytes.
    if let Some(last) = bytes.last_chunk() {
        let (words, _) = bytes.as_chunks();
        return words.iter().fold(find(*last), |found, word| found | find(*word)) != 0;
    }
    if let (Some(&[a, b, c, d]), Some(&[w, x, y, z])) = (bytes.first_chunk(), bytes.last_chunk()) {
        return find([a, b, c, d, w, x, y, z]) != 0;
    }
    match *bytes {
        [] => false,
        [first, .., last] => find([first, bytes[1], last, b' ', b' ', b' ', b' ', b' ']) != 0,
        [only] => find([only, b' ', b' ', b' ', b' ', b' ', b' ', b' ']) != 0,
    }
}

/// Bytes that need an escape within a JSON string.
#[inline]
fn need_escape(word: u64) -> u64 {
    (below(word, b' ') | equal(word, b'"') | equal(word, b'\\')) & !word
}

#[inline]
fn not_ascii(word: u64) -> u64 {
    word
}

/// Bytes below a bound, of those that are ASCII. One behind such a byte may be found too, which does not matter: then there is
/// one anyway.
#[inline]
fn below(word: u64, bound: u8) -> u64 {
    word.wrapping_sub(ONES * u64::from(bound))
}

/// Bytes that are this one, of those that are ASCII.
#[inline]
fn equal(word: u64, byte: u8) -> u64 {
    below(word ^ (ONES * u64::from(byte)), 1)
}

/// A one in each byte.
const ONES: u64 = u64::MAX / 255;

const HIGH_BITS: u64 = ONES << 7;
