//! `name=value&name=value` as clients encode it, in a form or a query.

use std::borrow::Cow;
use std::str;

use super::Presence;
use super::content_type::Charset;
use super::content_type::charset;
use super::name::NameMatch;
use super::name::compare;
use super::name::is_plain;
use super::name::may_be;
use crate::byte_count::count_bytes;
use crate::request::NotUnderstood;
use crate::request::percent;
use crate::request::percent::Escapes;

/// A text that is pairs from its first to its last byte.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct StrictPairs {
    /// Whether every name and every value has one reading, whatever field is asked for.
    is_plain: bool,
    charset: Charset,
}

/// What a text of pairs may hold beside letters and digits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PairsIn {
    Form,
    /// Browsers leave more marks as they are.
    Query,
}

impl StrictPairs {
    /// Reads a text that is not empty.
    pub(crate) fn read(text: &[u8], place: PairsIn, charset: Charset) -> Result<Self, NotUnderstood> {
        let odd = match place {
            PairsIn::Form => NotUnderstood::Form,
            PairsIn::Query => NotUnderstood::Query,
        };
        let allowed = match place {
            PairsIn::Form => count_bytes(text, is_form_byte),
            PairsIn::Query => count_bytes(text, is_query_byte),
        };
        if allowed < text.len() || text.starts_with(b"?") {
            return Err(odd);
        }
        let mut pairs = Self { is_plain: escapes_are_plain(text).ok_or(odd)?, charset };
        for (count, (name, value)) in split(text).enumerate() {
            if count >= MOST_FIELDS {
                return Err(NotUnderstood::TooManyFields);
            }
            if !is_plain(name) {
                pairs.is_plain = false;
                if place == PairsIn::Form && decoded(name).is_ok_and(|name| may_be_charset(&name)) {
                    return Err(NotUnderstood::Charset);
                }
            } else if place == PairsIn::Form && name.eq_ignore_ascii_case(CHARSET_FIELD.as_bytes()) {
                // Some applications read the form in the character set that it names here.
                pairs.charset = str::from_utf8(value).ok().and_then(self::charset).ok_or(NotUnderstood::Charset)?;
            }
        }
        Ok(pairs)
    }

    /// Whether every application finds the values of this field that the gateway finds. `text` is the one that was read.
    #[inline]
    pub(crate) fn judge(self, text: &[u8], asked: &str) -> Result<(), NotUnderstood> {
        if self.is_plain && is_plain(asked.as_bytes()) { Ok(()) } else { self.presence(text, asked).map(|_| ()) }
    }

    /// How often the field stands in the text that was read.
    pub(crate) fn presence(self, text: &[u8], asked: &str) -> Result<Presence, NotUnderstood> {
        let mut presence = Presence::Absent;
        for (name, value) in split(text) {
            let compared = match decoded(name) {
                Ok(name) => compare(&name, asked),
                Err(_) => NameMatch::Doubtful,
            };
            match compared {
                NameMatch::Other => continue,
                NameMatch::Doubtful => return Err(NotUnderstood::Name),
                NameMatch::Exact if presence == Presence::Absent => presence = Presence::Once,
                NameMatch::Exact | NameMatch::OtherCase => presence = Presence::Otherwise,
            }
            if !self.has_one_reading(value) {
                return Err(NotUnderstood::Value);
            }
        }
        Ok(presence)
    }

    fn has_one_reading(self, value: &[u8]) -> bool {
        decoded(value).is_ok_and(|value| {
            (self.charset == Charset::Utf8 || value.is_ascii())
                && !value.chars().any(|char| char.is_control() && !matches!(char, '\t' | '\r' | '\n'))
        })
    }
}

/// Whether a name may be that of the field which names a character set.
pub(super) fn may_be_charset(name: &str) -> bool {
    may_be(name, CHARSET_FIELD)
}

/// Whether all escapes are letters, digits and marks of ASCII. `None`: there is a broken escape.
fn escapes_are_plain(text: &[u8]) -> Option<bool> {
    let mut plain = true;
    for at in memchr::memchr_iter(b'%', text) {
        let (Some(high), Some(low)) = (text.get(at + 1), text.get(at + 2)) else { return None };
        if !high.is_ascii_hexdigit() || !low.is_ascii_hexdigit() {
            return None;
        }
        let is_del = *high == b'7' && low.eq_ignore_ascii_case(&b'f');
        plain &= matches!(high, b'2'..=b'7') && !is_del;
    }
    Some(plain)
}

/// Names and values, as they were sent. A name may lack its value, and a pair may be empty.
fn split(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let pair = match memchr::memchr(b'&', text) {
            Some(end) => {
                rest = Some(&text[end + 1..]);
                &text[..end]
            }
            None => text,
        };
        Some(match memchr::memchr(b'=', pair) {
            Some(equals) => (&pair[..equals], &pair[equals + 1..]),
            None => (pair, &[][..]),
        })
    })
}

fn decoded(text: &[u8]) -> Result<Cow<'_, str>, str::Utf8Error> {
    match percent::decode(text, Escapes { plus: true, code_units: false }) {
        None => str::from_utf8(text).map(Cow::Borrowed),
        Some(bytes) => String::from_utf8(bytes).map(Cow::Owned).map_err(|error| error.utf8_error()),
    }
}

/// As comparisons alone, which the compiler does for many bytes at once.
fn is_form_byte(byte: u8) -> bool {
    matches!(byte, b'!' | b'$'..=b':' | b'=' | b'?'..=b'[' | b']' | b'_' | b'a'..=b'z' | b'~')
}

fn is_query_byte(byte: u8) -> bool {
    is_form_byte(byte) || matches!(byte, b'^' | b'`' | b'{'..=b'}')
}

/// Later fields are ignored by some applications: PHP, Django and Express stop at a thousand.
pub(super) const MOST_FIELDS: usize = 500;

const CHARSET_FIELD: &str = "_charset_";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::request::urlencoded;

    fn form(text: &str) -> Result<StrictPairs, NotUnderstood> {
        StrictPairs::read(text.as_bytes(), PairsIn::Form, Charset::Utf8)
    }

    #[track_caller]
    fn check(text: &str, expected: Result<Presence, NotUnderstood>) {
        let found = form(text).and_then(|pairs| pairs.presence(text.as_bytes(), "username"));
        assert_eq!(found, expected, "{text}");
        let judged = form(text).and_then(|pairs| pairs.judge(text.as_bytes(), "username"));
        assert_eq!(judged, expected.map(|_| ()), "{text}");
    }

    #[test]
    fn a_form_as_clients_encode_it_is_understood() {
        check("username=alice&password=x", Ok(Presence::Once));
        check("password=a%26b%3D+c&username=al%20ice%2Bx", Ok(Presence::Once));
        check("user%6Eame=caf%C3%A9&note=one%0D%0Atwo", Ok(Presence::Once));
        check("q=a@b.example,c:d/e?f$g(h)'i'!j*k~l", Ok(Presence::Absent));
        check("user[email]=x&user%5Bpass%5D=y", Ok(Presence::Absent));
        check("flag&&x=1&", Ok(Presence::Absent));
        check("username=alice&username=bob", Ok(Presence::Otherwise));
        check("UserName=alice", Ok(Presence::Otherwise));
        check("username=alice&_charset_=utf-8", Ok(Presence::Once));
    }

    #[test]
    fn what_no_client_writes_is_not_understood() {
        for text in
            ["?username=alice", "a=1;username=alice", "username=al ice", "username=%zz", "a=%", "a=%u0061", "a={}"]
        {
            check(text, Err(NotUnderstood::Form));
        }
        for text in
            ["][username=alice", "username%5B=alice", "user+name=alice", "user.name=alice", "username%00x=alice"]
        {
            check(text, Err(NotUnderstood::Name));
        }
        check("%ff=1", Err(NotUnderstood::Name));
        check("username=alice%00x", Err(NotUnderstood::Value));
        check("username=alice%ff", Err(NotUnderstood::Value));
        check("other=alice%ff", Ok(Presence::Absent));
        check("_charset_=ibm037&username=alice", Err(NotUnderstood::Charset));
        check("%5Fcharset%5F=utf-16&username=alice", Err(NotUnderstood::Charset));
        check(&format!("{}username=alice", "a=&".repeat(MOST_FIELDS - 1)), Ok(Presence::Once));
        check(&format!("{}username=alice", "a=&".repeat(MOST_FIELDS)), Err(NotUnderstood::TooManyFields));
    }

    #[test]
    fn letters_of_latin_1_have_two_readings() {
        let pairs = |charset| StrictPairs::read(b"username=%aalice", PairsIn::Form, charset).unwrap();
        assert_eq!(pairs(Charset::Latin1).judge(b"username=%aalice", "username"), Err(NotUnderstood::Value));
        let text = b"username=caf%C3%A9";
        let pairs = StrictPairs::read(text, PairsIn::Form, Charset::Latin1).unwrap();
        assert_eq!(pairs.judge(text, "username"), Err(NotUnderstood::Value));
    }

    #[test]
    fn a_query_has_more_marks() {
        let query = |text: &str| StrictPairs::read(text.as_bytes(), PairsIn::Query, Charset::Utf8);
        assert!(query("a[]={x}|^`&123456").is_ok());
        assert_eq!(query("a=1;b=2"), Err(NotUnderstood::Query));
        assert_eq!(query("?a=1"), Err(NotUnderstood::Query));
        assert!(query("_charset_=ibm037").is_ok());
    }

    #[test]
    fn forms_have_these_bytes_alone() {
        for byte in 0..=u8::MAX {
            let is_one = byte.is_ascii_alphanumeric() || b"*-._+%&=~!'()@,:/?$[]".contains(&byte);
            assert_eq!(is_form_byte(byte), is_one, "{:?}", char::from(byte));
            assert_eq!(is_query_byte(byte), is_one || b"^`{|}".contains(&byte), "{:?}", char::from(byte));
        }
    }

    fn encoded(text: &str) -> String {
        text.bytes()
            .map(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'*' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
                b' ' => "+".to_owned(),
                _ => format!("%{byte:02X}"),
            })
            .collect()
    }

    proptest! {
        #[test]
        fn what_a_browser_writes_is_understood_and_read(
            fields in prop::collection::vec(("[a-z]{1,6}", "[ -~\u{e9}\r\n]{0,12}"), 0..6),
            value in "[ -~\u{e9}]{1,12}",
            place in 0_usize..6,
        ) {
            let mut pairs: Vec<_> = fields.iter().map(|(name, value)| format!("x{name}={}", encoded(value))).collect();
            pairs.insert(place.min(pairs.len()), format!("username={}", encoded(&value)));
            let text = pairs.join("&");
            check(&text, Ok(Presence::Once));
            prop_assert_eq!(urlencoded::values(text.as_bytes(), "username").collect::<Vec<_>>(), [value]);
        }

        #[test]
        fn a_mutated_form_is_not_understood_or_the_value_is_found(
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            insert in any::<bool>(),
        ) {
            let mut text = b"x=1&username=alice&password=secret".to_vec();
            let at = at.index(text.len());
            if insert { text.insert(at, byte) } else { text[at] = byte }
            let found = StrictPairs::read(&text, PairsIn::Form, Charset::Utf8)
                .and_then(|pairs| pairs.presence(&text, "username"));
            let values: Vec<_> = urlencoded::values(&text, "username").collect();
            prop_assert!(found.is_err() || (found == Ok(Presence::Absent)) == values.is_empty());
        }
    }
}
