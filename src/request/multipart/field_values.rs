//! Fields of multipart bodies, found by the headers of their parts. Boundaries are no help: applications read them
//! differently.

use std::borrow::Cow;

use memchr::memmem;

use super::parts::PartReading;
use super::parts::PartReadings;
use super::parts::find_all;
use crate::base64;
use crate::request::name::is_read_as;
use crate::request::percent;
use crate::request::percent::Escapes;

/// Every value that some application may read for the field `name`, in order. `boundaries` are those that
/// `Content-Type` names.
///
/// The text after a `Content-Disposition` with that name is a value, up to the next line that begins with `--`. An
/// encoded value is yielded as sent and decoded. Files are read like other fields.
pub(crate) fn values<'t>(text: &'t [u8], boundaries: &'t [Vec<u8>], name: &str) -> Vec<Cow<'t, str>> {
    let mut values = Vec::new();
    for part in PartReadings::new(text, boundaries) {
        if names(part.headers).any(|sent| is_read_as(&sent, name)) {
            part.read(boundaries, &mut |value| {
                if values.len() < MAX_VALUES && !values.contains(&value) {
                    values.push(value);
                }
            });
        }
    }
    values
}

impl<'t> PartReading<'t> {
    fn read(&self, boundaries: &[Vec<u8>], found: &mut dyn FnMut(Cow<'t, str>)) {
        let value = self.value;
        // Some applications end a value at the boundary, without a line break before it.
        let end = boundaries.iter().filter_map(|boundary| {
            memmem::find_iter(value, boundary).find(|at| value[..*at].ends_with(b"--")).map(|at| at - 2)
        });
        if let Some(end) = end.min() {
            found(percent::text(Cow::Borrowed(&value[..end])));
        } else {
            found(percent::text(Cow::Borrowed(value)));
        }
        if self.encodings().any(|named| named.eq_ignore_ascii_case(b"base64")) {
            for decoded in base64::readings(value) {
                found(percent::text(Cow::Owned(decoded)));
            }
        }
        if self.encodings().any(|named| named.eq_ignore_ascii_case(b"quoted-printable")) {
            found(percent::text(Cow::Owned(quoted_printable(value))));
        }
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
}

/// Every reading of every `name` parameter.
fn names(headers: &[u8]) -> impl Iterator<Item = Cow<'_, str>> {
    let ids = find_all(headers, b"content-id").map(|at| {
        let id = headers[at + 10..].trim_ascii_start();
        let id = id.strip_prefix(b":").unwrap_or(id);
        let id = id.split(|byte| b"\r\n".contains(byte)).next().unwrap_or_default();
        percent::text(Cow::Borrowed(id))
    });
    let names = find_names(headers).take(MAX_NAMES).flat_map(|at| {
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
    });
    ids.chain(names)
}

/// A parameter's value in applications that know quotes and backslashes, in those that know only quotes, and in those
/// that know neither.
fn spellings(value: &[u8]) -> [Option<Cow<'_, [u8]>>; 3] {
    let line = &value[..memchr::memchr3(b';', b'\r', b'\n', value).unwrap_or(value.len())];
    let [quote @ (b'"' | b'\''), inner @ ..] = value else {
        let word = line.split(|byte| b", \t".contains(byte)).next().unwrap_or_default();
        return [Some(Cow::Borrowed(line.trim_ascii())), Some(Cow::Borrowed(word)), None];
    };
    let mut escaped = Vec::new();
    let mut bytes = inner.iter();
    while let Some(byte) = bytes.next().filter(|byte| *byte != quote) {
        escaped.extend(if *byte == b'\\' { bytes.next() } else { Some(byte) });
    }
    let plain = inner.split(|byte| byte == quote).next().unwrap_or_default();
    [Some(Cow::Owned(escaped)), Some(Cow::Borrowed(plain)), Some(Cow::Borrowed(line.trim_ascii()))]
}

/// The positions of `name` as a word of its own, not as the end of `filename`.
fn find_names(headers: &[u8]) -> impl Iterator<Item = usize> {
    find_all(headers, b"name").filter(|at| {
        let before = headers[..*at].last().copied().unwrap_or(b';');
        !before.is_ascii_alphanumeric() && !b"-_".contains(&before)
    })
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

/// The names of one part; an honest client sends one.
const MAX_NAMES: usize = 8;

/// In bytes: longer than the name of any field.
const MAX_NAME: usize = 256;

/// Far more different values than a key takes: a request with fewer is refused already.
pub(crate) const MAX_VALUES: usize = 64;
