//! Reads `name=value&name=value` in every way that some application does.

use std::borrow::Cow;

use crate::rules::request::text;
use crate::rules::request::text::is_read_as;

const PLAIN: Escapes = Escapes { plus: true, code_units: false };

const WITH_CODE_UNITS: Escapes = Escapes { plus: true, code_units: true };

/// Every value that some application may read for the field `name`, in order.
///
/// Pairs are separated by `&`; a pair with a `;` is also read as several pairs. A value with `%uXXXX` is yielded with
/// and without decoding it, and a value with a NUL in each of its readings.
pub(crate) fn values<'t>(text: &'t [u8], name: &'t str) -> impl Iterator<Item = Cow<'t, str>> {
    pairs(text)
        .filter(move |(sent, _)| is_named(sent, name))
        .flat_map(|(_, value)| [Some(decoded(value, PLAIN)), misread(value)].into_iter().flatten())
        .flat_map(text::readings)
}

/// The parts between the separators; at least one.
fn split(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let Some(at) = memchr::memchr(separator, text) else { return Some(text) };
        rest = Some(&text[at + 1..]);
        Some(&text[..at])
    })
}

fn pairs(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    split(text, b'&')
        .flat_map(|pair| {
            let pieces = memchr::memchr(b';', pair).map(|_| split(pair, b';'));
            std::iter::once(pair).chain(pieces.into_iter().flatten())
        })
        .filter(|pair| !pair.is_empty())
        .map(|pair| match memchr::memchr(b'=', pair) {
            Some(equals) => (&pair[..equals], &pair[equals + 1..]),
            None => (pair, &[][..]),
        })
}

fn is_named(sent: &[u8], name: &str) -> bool {
    // Most names are plain and are not the wanted one, and a body may have very many.
    if is_plain(sent) && is_plain(name.as_bytes()) {
        return sent.eq_ignore_ascii_case(name.as_bytes());
    }
    is_read_as(&decoded(sent, PLAIN), name) || misread(sent).is_some_and(|sent| is_read_as(&sent, name))
}

/// Whether a name has only one reading.
fn is_plain(name: &[u8]) -> bool {
    name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// The text as an application that knows `%uXXXX` reads it, where that makes a difference.
fn misread(text: &[u8]) -> Option<Cow<'_, str>> {
    let differs = memchr::memchr_iter(b'%', text).any(|at| matches!(text.get(at + 1), Some(b'u' | b'U')));
    differs.then(|| decoded(text, WITH_CODE_UNITS))
}

fn decoded(bytes: &[u8], escapes: Escapes) -> Cow<'_, str> {
    text(decode(bytes, escapes).map_or(Cow::Borrowed(bytes), Cow::Owned))
}

// Percent-decoding as lenient applications do it.
//
// A library's decoder does not read what lenient applications read: `%uXXXX`, broken escapes and overlong UTF-8.

/// Escapes that are decoded beside `%XX`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Escapes {
    /// `+` is a space.
    pub(crate) plus: bool,
    /// `%uXXXX` is a code unit of UTF-16, as it is to some Windows servers.
    pub(crate) code_units: bool,
}

/// Decodes one layer of escapes. `None` when there is no escape. Broken escapes stay as they are.
pub(crate) fn decode(bytes: &[u8], escapes: Escapes) -> Option<Vec<u8>> {
    let plus = if escapes.plus { b'+' } else { b'%' };
    let start = memchr::memchr2_iter(b'%', plus, bytes).find(|at| escape(&bytes[*at..], escapes).is_some())?;
    let mut plain = Vec::with_capacity(bytes.len());
    plain.extend_from_slice(&bytes[..start]);
    let mut rest = &bytes[start..];
    while let Some((first, others)) = rest.split_first() {
        match escape(rest, escapes) {
            Some((Escaped::Byte(byte), length)) => {
                plain.push(byte);
                rest = &rest[length..];
            }
            Some((Escaped::Char(char), length)) => {
                plain.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
                rest = &rest[length..];
            }
            None => {
                plain.push(*first);
                rest = others;
            }
        }
    }
    Some(plain)
}

/// Bytes as text: overlong encodings of ASCII become that ASCII, other invalid bytes become U+FFFD.
pub(crate) fn text(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    match bytes {
        Cow::Borrowed(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => Cow::Owned(lenient(bytes)),
        },
        Cow::Owned(bytes) => Cow::Owned(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => lenient(error.as_bytes()),
        }),
    }
}

enum Escaped {
    Byte(u8),
    Char(char),
}

/// The escape at the start of `bytes`, and its length.
fn escape(bytes: &[u8], escapes: Escapes) -> Option<(Escaped, usize)> {
    match bytes {
        [b'%', b'u' | b'U', code @ ..] if escapes.code_units && code.len() >= 4 => {
            let unit = code[..4].iter().try_fold(0, |unit, digit| Some(unit * 16 + hex(*digit)?))?;
            Some((Escaped::Char(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER)), 6))
        }
        [b'%', high, low, ..] => {
            let byte = hex(*high)? * 16 + hex(*low)?;
            Some((Escaped::Byte(u8::try_from(byte).ok()?), 3))
        }
        [b'+', ..] if escapes.plus => Some((Escaped::Byte(b' '), 1)),
        _ => None,
    }
}

fn hex(digit: u8) -> Option<u32> {
    char::from(digit).to_digit(16)
}

fn lenient(bytes: &[u8]) -> String {
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, others)) = rest.split_first() {
        let (byte, length) = match rest {
            [lead @ 0xc0..=0xc1, last @ 0x80..=0xbf, ..] => (((lead & 1) << 6) | (last & 0x3f), 2),
            [0xe0, lead @ 0x80..=0x81, last @ 0x80..=0xbf, ..] => (((lead & 1) << 6) | (last & 0x3f), 3),
            [0xf0, 0x80, lead @ 0x80..=0x81, last @ 0x80..=0xbf, ..] => (((lead & 1) << 6) | (last & 0x3f), 4),
            _ => {
                plain.push(*first);
                rest = others;
                continue;
            }
        };
        plain.push(byte);
        rest = &rest[length..];
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(sent: &str, escapes: Escapes, expected: &str) {
        let plain = decode(sent.as_bytes(), escapes).map_or(Cow::Borrowed(sent.as_bytes()), Cow::Owned);
        assert_eq!(text(plain), expected, "{sent:?}");
    }

    #[test]
    fn one_layer_of_escapes_is_taken_away() {
        let plain = Escapes::default();
        check("%41b%63", plain, "Abc");
        check("%2541", plain, "%41");
        check("a+b", plain, "a+b");
        check("a%2", plain, "a%2");
        check("%zz%", plain, "%zz%");
        check("%u0041", plain, "%u0041");
        check("%c3%a9", plain, "é");
    }

    #[test]
    fn plus_and_code_units_are_decoded_where_asked() {
        check("a+b%2B", Escapes { plus: true, code_units: false }, "a b+");
        check("%u0041%U00e9%u00", Escapes { plus: false, code_units: true }, "Aé%u00");
        check("%ud800", Escapes { plus: false, code_units: true }, "\u{fffd}");
    }

    #[test]
    fn overlong_ascii_is_the_ascii_it_encodes() {
        let plain = Escapes::default();
        check("%c0%af", plain, "/");
        check("%c1%9c", plain, "\\");
        check("%c0%80", plain, "\0");
        check("%e0%80%af", plain, "/");
        check("%e0%81%81", plain, "A");
        check("%f0%80%80%ae", plain, ".");
    }

    #[test]
    fn other_invalid_bytes_become_the_replacement_character() {
        let plain = Escapes::default();
        check("a%ffb", plain, "a\u{fffd}b");
        check("%c0", plain, "\u{fffd}");
        check("%e9t%e9", plain, "\u{fffd}t\u{fffd}");
    }

    proptest! {
        #[test]
        fn escapes_are_taken_away_and_nothing_grows(
            bytes in prop::collection::vec(any::<u8>(), 0..40),
            noise in "(%|u|[0-9a-f]{1,4}|[+]|x|\u{e9}){0,20}",
            plus in any::<bool>(),
            code_units in any::<bool>(),
        ) {
            let escapes = Escapes { plus, code_units };
            let escaped: Vec<u8> = bytes.iter().flat_map(|byte| format!("%{byte:02x}").into_bytes()).collect();
            prop_assert_eq!(decode(&escaped, escapes).unwrap_or_default(), bytes);
            let decoded = decode(noise.as_bytes(), escapes);
            prop_assert!(decoded.as_ref().is_none_or(|decoded| decoded.len() <= noise.len()));
            let text = text(Cow::Owned(decoded.unwrap_or_default()));
            prop_assert!(text.len() <= noise.len() * 3);
        }
    }

    #[track_caller]
    fn check_urlencoded(text: &str, expected: &[&str]) {
        let found: Vec<_> = values(text.as_bytes(), "username").collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn a_field_is_found_in_every_spelling() {
        check_urlencoded("username=alice", &["alice"]);
        check_urlencoded("a=b&username=alice&c=d", &["alice"]);
        check_urlencoded("username=alice&username=bob", &["alice", "bob"]);
        check_urlencoded("%75sername=alice", &["alice"]);
        check_urlencoded("USERNAME=alice", &["alice"]);
        check_urlencoded("+username=alice", &["alice"]);
        check_urlencoded("username[]=alice", &["alice"]);
        check_urlencoded("username%5B%5D=alice", &["alice"]);
        check_urlencoded("username%00x=alice", &["alice"]);
        check_urlencoded("%u0075sername=alice", &["alice"]);
        check_urlencoded("&&username=alice&", &["alice"]);
        check_urlencoded("username=", &[""]);
        check_urlencoded("username", &[""]);
        check_urlencoded("username=a=b", &["a=b"]);
        check_urlencoded("username=a+b%2Bc%26d", &["a b+c&d"]);
        check_urlencoded("username=caf%C3%A9", &["café"]);
        check_urlencoded("username=%ff", &["\u{fffd}"]);
        check_urlencoded("username=%zz%", &["%zz%"]);
        check_urlencoded("user=alice", &[]);
        check_urlencoded("", &[]);
    }

    #[test]
    fn a_semicolon_separates_in_some_applications() {
        check_urlencoded("a=1;username=alice", &["alice"]);
        check_urlencoded("username=alice;b=2", &["alice;b=2", "alice"]);
        check_urlencoded("username=alice;username=bob&c", &["alice;username=bob", "alice", "bob"]);
    }

    #[test]
    fn code_units_are_decoded_as_some_applications_do() {
        check_urlencoded("username=%u0061lice", &["%u0061lice", "alice"]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_pairs(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = values(&bytes, "username").count();
        }
    }
}
