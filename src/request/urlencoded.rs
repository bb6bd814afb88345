//! Reads `name=value&name=value` in every way that some application does.

use std::borrow::Cow;

use super::name::is_read_as;
use super::nul;
use super::percent;
use super::percent::Escapes;

/// Every value that some application may read for the field `name`, in order.
///
/// Pairs are separated by `&`; a pair with a `;` is also read as several pairs. A value with `%uXXXX` is yielded with
/// and without decoding it, and a value with a NUL in each of its readings.
pub(crate) fn values<'t>(text: &'t [u8], name: &'t str) -> impl Iterator<Item = Cow<'t, str>> {
    pairs(text)
        .filter(move |(sent, _)| is_named(sent, name))
        .flat_map(|(_, value)| [Some(decoded(value, PLAIN)), misread(value)].into_iter().flatten())
        .flat_map(nul::readings)
}

/// The parts between the separators, of which there is always one.
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
    percent::text(percent::decode(bytes, escapes).map_or(Cow::Borrowed(bytes), Cow::Owned))
}

const PLAIN: Escapes = Escapes { plus: true, code_units: false };

const WITH_CODE_UNITS: Escapes = Escapes { plus: true, code_units: true };

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<_> = values(text.as_bytes(), "username").collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn a_field_is_found_in_every_spelling() {
        check("username=alice", &["alice"]);
        check("a=b&username=alice&c=d", &["alice"]);
        check("username=alice&username=bob", &["alice", "bob"]);
        check("%75sername=alice", &["alice"]);
        check("USERNAME=alice", &["alice"]);
        check("+username=alice", &["alice"]);
        check("username[]=alice", &["alice"]);
        check("username%5B%5D=alice", &["alice"]);
        check("username%00x=alice", &["alice"]);
        check("%u0075sername=alice", &["alice"]);
        check("&&username=alice&", &["alice"]);
        check("username=", &[""]);
        check("username", &[""]);
        check("username=a=b", &["a=b"]);
        check("username=a+b%2Bc%26d", &["a b+c&d"]);
        check("username=caf%C3%A9", &["café"]);
        check("username=%ff", &["\u{fffd}"]);
        check("username=%zz%", &["%zz%"]);
        check("user=alice", &[]);
        check("", &[]);
    }

    #[test]
    fn a_semicolon_separates_in_some_applications() {
        check("a=1;username=alice", &["alice"]);
        check("username=alice;b=2", &["alice;b=2", "alice"]);
        check("username=alice;username=bob&c", &["alice;username=bob", "alice", "bob"]);
    }

    #[test]
    fn code_units_are_decoded_as_some_applications_do() {
        check("username=%u0061lice", &["%u0061lice", "alice"]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_pairs(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = values(&bytes, "username").count();
        }
    }
}
