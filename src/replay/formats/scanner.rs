//! Reads a line of text from its start, field by field.

use std::borrow::Cow;

use memchr::memchr;
use memchr::memchr2;

/// The rest of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scanner<'l> {
    pub(super) rest: &'l [u8],
}

impl<'l> Scanner<'l> {
    pub(super) fn new(line: &'l [u8]) -> Self {
        Self { rest: line }
    }

    /// Everything before the next space, which is skipped, or to the end of the line. `None`: nothing is left.
    pub(super) fn word(&mut self) -> Option<&'l [u8]> {
        let end = memchr(b' ', self.rest).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.get(1..).unwrap_or_default();
        (!word.is_empty()).then_some(word)
    }

    pub(super) fn text_word(&mut self) -> Option<&'l str> {
        str::from_utf8(self.word()?).ok()
    }

    /// Everything before this byte, which is skipped.
    pub(super) fn until(&mut self, end: u8) -> Option<&'l [u8]> {
        let at = memchr(end, self.rest)?;
        let (text, rest) = self.rest.split_at(at);
        self.rest = &rest[1..];
        Some(text)
    }

    /// Skips these bytes.
    pub(super) fn skip(&mut self, expected: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(expected)?;
        Some(())
    }

    /// The text between two quotation marks, without its escapes, and skips a space behind it.
    pub(super) fn quoted(&mut self) -> Option<Cow<'l, [u8]>> {
        let text = self.rest.strip_prefix(b"\"")?;
        let (mut at, mut has_escapes) = (0, false);
        loop {
            let found = at + memchr2(b'"', b'\\', &text[at..])?;
            if text[found] == b'"' {
                at = found;
                break;
            }
            has_escapes = true;
            at = found + 2;
            if at > text.len() {
                return None;
            }
        }
        self.rest = &text[at + 1..];
        self.rest = self.rest.strip_prefix(b" ").unwrap_or(self.rest);
        Some(if has_escapes { Cow::Owned(unescaped(&text[..at])) } else { Cow::Borrowed(&text[..at]) })
    }
}

/// `\x22`, `\"`, `\\` and `\n` as nginx and Apache write them.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr(b'\\', rest) {
        plain.extend_from_slice(&rest[..at]);
        let (byte, length) = match &rest[at + 1..] {
            [b'x' | b'X', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                (hex(*high) << 4 | hex(*low), 4)
            }
            [b'n', ..] => (b'\n', 2),
            [b'r', ..] => (b'\r', 2),
            [b't', ..] => (b'\t', 2),
            [byte @ (b'"' | b'\\'), ..] => (*byte, 2),
            _ => (b'\\', 1),
        };
        plain.push(byte);
        rest = &rest[at + length..];
    }
    plain.extend_from_slice(rest);
    plain
}

/// The value of a hexadecimal digit.
pub(super) fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20).wrapping_sub(b'a').wrapping_add(10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Option<&[u8]>) {
        assert_eq!(Scanner::new(line.as_bytes()).quoted().as_deref(), expected, "{line}");
    }

    #[test]
    fn quoted_text_ends_at_the_first_mark_that_is_not_escaped() {
        check(r#""GET / HTTP/1.1" 200"#, Some(b"GET / HTTP/1.1"));
        check(r#""a\"b\\" c"#, Some(b"a\"b\\"));
        check(r#""a\x22b\xfF" c"#, Some(b"a\"b\xff"));
        check(r#""\q\x1""#, Some(br"\q\x1"));
        check(r#""no end"#, None);
        check(r#""no end\"#, None);
        check("bare", None);
    }
}
