//! Splits JSON into brackets, separators, strings and bare words.

use std::borrow::Cow;

use crate::request::percent;

pub(super) enum JsonToken<'t> {
    Open(Bracket),
    Close(Bracket),
    Colon,
    Comma,
    Quoted(Cow<'t, str>),
    Bare(&'t [u8]),
}

#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Bracket {
    Object,
    Array,
}

/// Splits a text into tokens. No text is an error: what is not JSON is read as lenient libraries read it.
pub(super) struct JsonTokens<'t> {
    rest: &'t [u8],
}

impl<'t> JsonTokens<'t> {
    pub(super) fn new(text: &'t [u8]) -> Self {
        Self { rest: text }
    }

    pub(super) fn next(&mut self) -> Option<JsonToken<'t>> {
        self.skip();
        let (first, others) = self.rest.split_first()?;
        let token = match first {
            b'{' => JsonToken::Open(Bracket::Object),
            b'[' => JsonToken::Open(Bracket::Array),
            b'}' => JsonToken::Close(Bracket::Object),
            b']' => JsonToken::Close(Bracket::Array),
            b':' => JsonToken::Colon,
            b',' => JsonToken::Comma,
            b'"' | b'\'' => {
                self.rest = others;
                return self.quoted(*first).map(JsonToken::Quoted);
            }
            _ => {
                let end = self.rest.iter().position(|byte| *byte <= b' ' || b"{}[]:,\"'".contains(byte));
                let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
                self.rest = rest;
                return Some(JsonToken::Bare(word));
            }
        };
        self.rest = others;
        Some(token)
    }

    /// The next object or list, whatever stands before it: some libraries skip that.
    pub(super) fn next_document(&mut self) -> Option<Bracket> {
        loop {
            self.skip();
            let (first, others) = self.rest.split_first()?;
            self.rest = others;
            match first {
                b'{' => return Some(Bracket::Object),
                b'[' => return Some(Bracket::Array),
                _ => {}
            }
        }
    }

    /// Skips blanks, byte order marks and comments, which some libraries allow.
    fn skip(&mut self) {
        loop {
            let end = match self.rest {
                [0..=b' ', ..] => 1,
                [0xef, 0xbb, 0xbf, ..] => 3,
                [b'/', b'/', ..] | [b'#', ..] => memchr::memchr2(b'\n', b'\r', self.rest).unwrap_or(self.rest.len()),
                [b'/', b'*', body @ ..] => memchr::memmem::find(body, b"*/").map_or(self.rest.len(), |end| end + 4),
                _ => return,
            };
            self.rest = &self.rest[end..];
        }
    }

    /// The rest of a string after its opening quote. `None` when the text ends before its closing quote.
    fn quoted(&mut self, quote: u8) -> Option<Cow<'t, str>> {
        let text = self.rest;
        let Some(end) = memchr::memchr2(quote, b'\\', text) else { return self.cut() };
        if text[end] == quote {
            self.rest = &text[end + 1..];
            return Some(percent::text(Cow::Borrowed(&text[..end])));
        }
        let mut plain = text[..end].to_vec();
        let mut rest = &text[end..];
        loop {
            let Some((first, others)) = rest.split_first() else { return self.cut() };
            rest = others;
            if *first == quote {
                self.rest = rest;
                return Some(percent::text(Cow::Owned(plain)));
            }
            if *first != b'\\' {
                plain.push(*first);
                continue;
            }
            let Some((escape, others)) = rest.split_first() else { return self.cut() };
            rest = others;
            plain.push(match escape {
                b'n' => b'\n',
                b't' => b'\t',
                b'r' => b'\r',
                b'b' => 8,
                b'f' => 12,
                b'u' => {
                    let char = code_point(&mut rest).unwrap_or(char::REPLACEMENT_CHARACTER);
                    plain.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
                    continue;
                }
                other => *other,
            });
        }
    }

    fn cut<T>(&mut self) -> Option<T> {
        self.rest = &[];
        None
    }
}

/// The character after `\u`: four digits, or twice four for a surrogate pair. Takes the digits off `rest`; `None` when
/// they stand for no character.
fn code_point(rest: &mut &[u8]) -> Option<char> {
    let first = code_unit(rest)?;
    *rest = &rest[4..];
    if !(0xd800..0xdc00).contains(&first) {
        return char::from_u32(first);
    }
    let second = rest.strip_prefix(b"\\u")?;
    let low = code_unit(second).filter(|low| (0xdc00..0xe000).contains(low))?;
    *rest = &second[4..];
    char::from_u32(0x10000 + ((first - 0xd800) << 10) + (low - 0xdc00))
}

fn code_unit(digits: &[u8]) -> Option<u32> {
    digits.get(..4)?.iter().try_fold(0, |unit, digit| Some(unit * 16 + char::from(*digit).to_digit(16)?))
}
