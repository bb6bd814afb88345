//! Fields of multipart bodies, found by their headers instead of their boundary: readers disagree about boundaries.

use std::borrow::Cow;

use memchr::memmem;

use super::base64;
use super::content_type::is_plain_charset;
use super::name::is_read_as;
use super::percent;
use super::percent::Escapes;

/// What a text looks like as a multipart body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Survey {
    /// Whether there is a part in it.
    pub(crate) has_parts: bool,
    /// Whether all readers read the same: nothing is encoded in a way that only some know.
    pub(crate) understood: bool,
}

pub(crate) fn survey(text: &[u8], boundaries: &[Vec<u8>]) -> Survey {
    let mut survey = Survey { has_parts: false, understood: true };
    for part in Parts::new(text, boundaries) {
        survey.has_parts = true;
        survey.understood &= part.is_plain();
    }
    survey
}

/// Every value that some application may read for the field `name`, in order. `boundaries` are those that the header names.
///
/// Whatever follows a `Content-Disposition` with that name is a value, up to the next line that begins with `--`.
/// Encoded values are yielded as sent and decoded, and files like any field.
pub(crate) fn values<'t>(text: &'t [u8], boundaries: &'t [Vec<u8>], name: &str) -> Vec<Cow<'t, str>> {
    let mut values = Vec::new();
    for part in Parts::new(text, boundaries) {
        if values.len() >= MAX_VALUES {
            break;
        }
        if names(part.headers).any(|sent| is_read_as(&sent, name)) {
            part.read(boundaries, &mut |value| values.push(value));
        }
    }
    values
}

/// A part as one reader sees it.
struct Part<'t> {
    /// From `Content-Disposition` to the blank line.
    headers: &'t [u8],
    /// What stands before that, and may be headers too.
    before: &'t [u8],
    value: &'t [u8],
}

impl<'t> Part<'t> {
    fn read(&self, boundaries: &[Vec<u8>], found: &mut dyn FnMut(Cow<'t, str>)) {
        let value = self.value;
        // Some readers end a value where the boundary is, without a line break before it.
        let end = boundaries.iter().filter_map(|boundary| {
            memmem::find_iter(value, boundary).find(|at| value[..*at].ends_with(b"--")).map(|at| at - 2)
        });
        if let Some(end) = end.min() {
            found(percent::text(Cow::Borrowed(&value[..end])));
        } else {
            found(percent::text(Cow::Borrowed(value)));
        }
        for (encoding, decode) in
            [(&b"base64"[..], base64::decode as fn(&[u8]) -> Vec<u8>), (b"quoted-printable", quoted_printable)]
        {
            if self.encodings().any(|named| named.eq_ignore_ascii_case(encoding)) {
                found(percent::text(Cow::Owned(decode(value))));
            }
        }
    }

    fn is_plain(&self) -> bool {
        let known: [&[u8]; 6] = [b"7bit", b"8bit", b"binary", b"base64", b"quoted-printable", b""];
        self.encodings().all(|named| known.iter().any(|known| named.eq_ignore_ascii_case(known)))
            && self.parameters(b"charset").all(|charset| {
                std::str::from_utf8(charset).is_ok_and(|charset| is_plain_charset(charset.trim_matches(['"', '\''])))
            })
            // Parameters in pieces or in another alphabet, and words encoded as in mail.
            && !find_names(self.headers).any(|at| self.headers[at + 4..].trim_ascii_start().starts_with(b"*"))
            && memmem::find(self.headers, b"=?").is_none()
            && self.headers.len() <= MAX_HEADERS
    }

    fn encodings(&self) -> impl Iterator<Item = &'t [u8]> {
        let (before, headers) = (self.before, self.headers);
        [before, headers].into_iter().flat_map(|block| {
            find_all(block, b"content-transfer-encoding").map(|at| {
                let value = block[at + 25..].trim_ascii_start();
                let value = value.strip_prefix(b":").unwrap_or(value).trim_ascii_start();
                let end = value.iter().position(|byte| byte.is_ascii_whitespace() || *byte == b';');
                &value[..end.unwrap_or(value.len())]
            })
        })
    }

    /// What follows `name=` in the headers, up to the next semicolon.
    fn parameters(&self, name: &'static [u8]) -> impl Iterator<Item = &'t [u8]> {
        let (before, headers) = (self.before, self.headers);
        [before, headers].into_iter().flat_map(move |block| {
            find_all(block, name).map(move |at| {
                let value = &block[at + name.len()..];
                let value = &value[..value.len().min(MAX_NAME)];
                let end = value.iter().position(|byte| b";\r\n".contains(byte));
                let value = value[..end.unwrap_or(value.len())].trim_ascii();
                value.strip_prefix(b"=").unwrap_or(value).trim_ascii()
            })
        })
    }
}

/// Every part, in each of the ways readers tell its headers from its value.
struct Parts<'t> {
    text: &'t [u8],
    boundaries: &'t [Vec<u8>],
    /// Parts that begin before this were handed out.
    at: usize,
    delimiters: Delimiters<'t>,
    /// The same part for those to whom only CR LF ends a line.
    strict: Option<Part<'t>>,
    strict_delimiters: Delimiters<'t>,
}

impl<'t> Parts<'t> {
    fn new(text: &'t [u8], boundaries: &'t [Vec<u8>]) -> Self {
        let delimiters = Delimiters { text, at: 0 };
        Self { text, boundaries, at: 0, delimiters, strict: None, strict_delimiters: delimiters }
    }

    /// What may be headers before `Content-Disposition`: it begins behind a boundary.
    fn before(&self, start: usize) -> &'t [u8] {
        let before = &self.text[self.at.max(start.saturating_sub(MAX_HEADERS)).min(start)..start];
        let begins = if self.boundaries.is_empty() {
            memmem::rfind(before, b"\n--").or_else(|| memmem::rfind(before, b"\r--"))
        } else {
            let delimiters = self.boundaries.iter().filter_map(|boundary| rfind_delimiter(before, boundary));
            delimiters.max()
        };
        &before[begins.unwrap_or_default()..]
    }
}

/// Lines that begin with `--`, each looked for only once.
#[derive(Clone, Copy)]
struct Delimiters<'t> {
    text: &'t [u8],
    at: usize,
}

impl<'t> Delimiters<'t> {
    /// What stands from `start` to the next of them. `start` never goes back.
    fn value(&mut self, start: usize) -> &'t [u8] {
        self.at = self.at.max(start);
        while !self.is_delimiter(start) {
            let from = self.at + 1;
            let next = self.text.get(from..).and_then(|rest| memmem::find(rest, b"--"));
            let Some(next) = next else {
                self.at = self.text.len();
                return &self.text[start..];
            };
            self.at = from + next;
        }
        let value = &self.text[start..self.at];
        let value = value.strip_suffix(b"\n").unwrap_or(value);
        value.strip_suffix(b"\r").unwrap_or(value)
    }

    fn is_delimiter(&self, start: usize) -> bool {
        self.at > start && self.text[self.at..].starts_with(b"--") && matches!(self.text[self.at - 1], b'\r' | b'\n')
    }
}

impl<'t> Iterator for Parts<'t> {
    type Item = Part<'t>;

    fn next(&mut self) -> Option<Part<'t>> {
        if let Some(part) = self.strict.take() {
            return Some(part);
        }
        let start = self.at + find_all(self.text.get(self.at..)?, b"content-disposition").next()?;
        let Some((headers_end, value_start)) = blank_line(self.text, start) else {
            let part = Part { headers: &self.text[start..], before: &[], value: &[] };
            self.at = self.text.len();
            return Some(part);
        };
        let before = self.before(start);
        let window = &self.text[start..self.text.len().min(start + MAX_HEADERS)];
        if let Some(end) = memmem::find(window, b"\r\n\r\n")
            && start + end + 4 != value_start
        {
            let value = self.strict_delimiters.value(start + end + 4);
            self.strict = Some(Part { headers: &window[..end], before, value });
        }
        self.at = value_start;
        Some(Part { headers: &self.text[start..headers_end], before, value: self.delimiters.value(value_start) })
    }
}

/// Where the headers end, and what follows begins.
fn blank_line(text: &[u8], from: usize) -> Option<(usize, usize)> {
    let line_break = |at: usize| match text.get(at..)? {
        [b'\r', b'\n', ..] => Some(at + 2),
        [b'\r' | b'\n', ..] => Some(at + 1),
        _ => None,
    };
    memchr::memchr2_iter(b'\r', b'\n', &text[from..])
        .map(|at| from + at)
        .find_map(|at| Some((at, line_break(line_break(at)?)?)))
}

/// Every reading of every `name` parameter.
fn names(headers: &[u8]) -> impl Iterator<Item = Cow<'_, str>> {
    find_names(headers).flat_map(|at| {
        let rest = &headers[at + 4..];
        let rest = rest[..rest.len().min(MAX_NAME)].trim_ascii_start();
        let mut readings: Vec<Cow<'_, str>> = Vec::new();
        if let Some(value) = rest.strip_prefix(b"=") {
            readings.extend(spellings(value.trim_ascii_start()).into_iter().flatten().map(percent::text));
        } else if let Some(value) = rest.strip_prefix(b"*").and_then(|rest| rest.split(|byte| *byte == b'=').nth(1)) {
            // name*=utf-8''user%6eame
            let value = value.split(|byte| b";\r\n".contains(byte)).next().unwrap_or_default();
            let value = value.rsplit(|byte| *byte == b'\'').next().unwrap_or_default();
            readings.push(percent::text(Cow::Borrowed(value)));
        }
        let decoded = |name: &Cow<'_, str>| percent::decode(name.as_bytes(), Escapes::default());
        let more: Vec<_> = readings.iter().filter_map(decoded).map(|name| percent::text(Cow::Owned(name))).collect();
        readings.into_iter().chain(more)
    })
}

fn rfind_delimiter(text: &[u8], boundary: &[u8]) -> Option<usize> {
    memmem::rfind_iter(text, boundary).find(|at| text[..*at].ends_with(b"--"))
}

/// A parameter's value to those who know quotes and backslashes, to those who know quotes only, and to those who know neither.
fn spellings(value: &[u8]) -> [Option<Cow<'_, [u8]>>; 3] {
    let until = |stops: &'static [u8]| {
        let end = value.iter().position(|byte| stops.contains(byte));
        value[..end.unwrap_or(value.len())].trim_ascii()
    };
    match value {
        [quote @ (b'"' | b'\''), inner @ ..] => {
            let mut escaped = Vec::new();
            let mut bytes = inner.iter();
            while let Some(byte) = bytes.next().filter(|byte| *byte != quote) {
                escaped.extend(if *byte == b'\\' { bytes.next() } else { Some(byte) });
            }
            let plain = inner.split(|byte| byte == quote).next().unwrap_or_default();
            [Some(Cow::Owned(escaped)), Some(Cow::Borrowed(plain)), Some(Cow::Borrowed(until(b";\r\n")))]
        }
        _ => [Some(Cow::Borrowed(until(b";\r\n"))), Some(Cow::Borrowed(until(b";, \t\r\n"))), None],
    }
}

/// Where `name` stands as a word of its own, not as the end of `filename`.
fn find_names(headers: &[u8]) -> impl Iterator<Item = usize> {
    find_all(headers, b"name").filter(|at| {
        let before = headers[..*at].last().copied().unwrap_or(b';');
        !before.is_ascii_alphanumeric() && !b"-_".contains(&before)
    })
}

/// Where `word`, which is in lower case, stands in any case.
fn find_all<'t>(text: &'t [u8], word: &'static [u8]) -> impl Iterator<Item = usize> + use<'t> {
    let first = word[0];
    memchr::memchr2_iter(first, first.to_ascii_uppercase(), text)
        .filter(move |at| text[*at..].get(..word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word)))
}

fn quoted_printable(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, others)) = rest.split_first() {
        rest = match rest {
            [b'=', b'\r', b'\n', others @ ..] | [b'=', b'\n', others @ ..] => others,
            [b'=', high, low, others @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                let digit = |byte: u8| {
                    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok()).unwrap_or_default()
                };
                plain.push(digit(*high) * 16 + digit(*low));
                others
            }
            _ => {
                plain.push(*first);
                others
            }
        };
    }
    plain
}

/// In bytes: headers of a part longer than this are not read the way strict readers do.
const MAX_HEADERS: usize = 2048;

/// In bytes: no field has a longer name.
const MAX_NAME: usize = 256;

/// Far more than any key takes; whoever sends more is refused for less.
const MAX_VALUES: usize = 64;

#[cfg(test)]
mod tests;
