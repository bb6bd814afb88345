//! `name=value&name=value` as clients encode it, in a form or a query.

use std::borrow::Cow;
use std::str;

use caseless::Caseless;
use unicode_normalization::UnicodeNormalization;

use super::Presence;
use super::content_type::{Charset, charset};
use crate::rules::request::text::is_read_as;
use crate::rules::request::urlencoded::Escapes;
use crate::rules::request::{NotUnderstood, urlencoded};
use crate::words::digits::count_bytes;

/// Later fields are ignored by some applications: PHP, Django and Express stop at a thousand.
pub(super) const MOST_FIELDS: usize = 500;

const CHARSET_FIELD: &str = "_charset_";

/// A text that is pairs from its first to its last byte.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct StrictPairs {
    /// Whether every name and every value has one reading, for any field.
    is_plain: bool,
    charset: Charset,
}

/// The bytes that a text of pairs may hold beside letters and digits.
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

/// Whether a name may be the name of the field that declares the character set.
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
    match urlencoded::decode(text, Escapes { plus: true, code_units: false }) {
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

// Tells which names surely belong to another field.

/// How a name that was sent stands to one that is asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum NameMatch {
    Exact,
    /// The asked name in another case, which some applications ignore.
    OtherCase,
    /// Surely another field.
    Other,
    /// Some framework may read it as the asked field.
    Doubtful,
}

/// Whether every application reads a name alike, but for case.
pub(super) fn is_plain(name: &[u8]) -> bool {
    name.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Compares two names of fields in a form, a query or a multipart body.
///
/// Frameworks split names at brackets, dots, blanks and other marks, drop the marks, or drop the text around them. So a
/// name with such marks belongs to another field only if its letters differ from those of the asked name, and none of
/// its pieces is the asked name.
pub(super) fn compare(sent: &str, asked: &str) -> NameMatch {
    if sent == asked {
        return NameMatch::Exact;
    }
    let is_sent_plain = is_plain(sent.as_bytes());
    if is_sent_plain && is_plain(asked.as_bytes()) {
        return if sent.eq_ignore_ascii_case(asked) { NameMatch::OtherCase } else { NameMatch::Other };
    }
    if is_sent_plain && sent.eq_ignore_ascii_case(asked) {
        return NameMatch::OtherCase;
    }
    let has_odd_letter = sent.chars().any(|char| char.is_control() || matches!(char, '%' | '\u{fffd}'));
    if has_odd_letter || may_be(sent, asked) { NameMatch::Doubtful } else { NameMatch::Other }
}

/// Whether some framework may read a name as the asked one.
pub(super) fn may_be(sent: &str, asked: &str) -> bool {
    let has_marks = !is_plain(sent.as_bytes());
    is_read_as(sent, asked) || has_marks && (letters(sent).eq(letters(asked)) || has_piece(sent, asked))
}

/// The letters and digits of a name, without case.
fn letters(name: &str) -> impl Iterator<Item = char> {
    folded(name).chars().filter(|char| char.is_alphanumeric()).collect::<Vec<_>>().into_iter()
}

/// Whether the pieces of `sent` between its marks contain the pieces of `asked` in a row.
fn has_piece(sent: &str, asked: &str) -> bool {
    let (sent, asked) = (folded(sent), folded(asked));
    let (sent, asked): (Vec<_>, Vec<_>) = (pieces(&sent).collect(), pieces(&asked).collect());
    !asked.is_empty() && sent.windows(asked.len()).any(|window| window == asked)
}

fn pieces(name: &str) -> impl Iterator<Item = &str> {
    let is_mark = |char: char| !(char.is_alphanumeric() || matches!(char, '_' | '-'));
    name.split(is_mark).filter(|piece| !piece.is_empty())
}

fn folded(name: &str) -> Cow<'_, str> {
    if name.is_ascii() {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Owned(name.nfkc().default_case_fold().collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rules::request::urlencoded;

    #[track_caller]
    fn check(asked: &str, sent: &[&str], expected: NameMatch) {
        for sent in sent {
            assert_eq!(compare(sent, asked), expected, "{sent:?} for {asked:?}");
        }
    }

    #[test]
    fn a_name_that_frameworks_rewrite_is_doubtful() {
        check(
            "username",
            &[
                "][username",
                "username[",
                "username]",
                "username[]",
                "username[0]",
                "[username]",
                "[username]x",
                "user name",
                "user.name",
                "user[name]",
                "us[er].name",
                " username",
                "username ",
                "user\u{a0}name",
                "user\u{200b}name",
                "username\0x",
                "model.username",
                "login[username]",
                "login[username][]",
                "username:string",
                "!username",
                "\u{ff55}sername",
                "u%73ername",
            ],
            NameMatch::Doubtful,
        );
        check("user_name", &["user.name", "user name", "user[name", "x[user_name]"], NameMatch::Doubtful);
        check("user[login]", &["user.login", "user_login", "user[login][]", "USER[login]"], NameMatch::Doubtful);
        check("_method", &["_method[]", "x[_method]", ".method", "[_method"], NameMatch::Doubtful);
    }

    #[test]
    fn names_of_ordinary_forms_are_other_fields() {
        check(
            "username",
            &["user[email]", "user", "user_name", "user-name", "password", "g-recaptcha-response", "a.b", "Vor Name"],
            NameMatch::Other,
        );
        check(
            "username",
            &["j_idt5:name", "ctl00$Main$Password", "имя", "__RequestVerificationToken"],
            NameMatch::Other,
        );
        check("user[login]", &["user[password]", "user[remember_me]", "authenticity_token", "login"], NameMatch::Other);
        check("ctl00$Main$UserName", &["ctl00$Main$Password", "ctl00$Main$Login"], NameMatch::Other);
        check("_method", &["method", "payment_method", "shipping[method]"], NameMatch::Other);
    }

    #[test]
    fn a_name_is_itself_and_case_is_known() {
        check("username", &["username"], NameMatch::Exact);
        check("user[login]", &["user[login]"], NameMatch::Exact);
        check("username", &["UserName", "USERNAME"], NameMatch::OtherCase);
    }

    proptest! {
        #[test]
        fn what_a_lenient_reader_takes_for_the_field_is_never_another(
            sent in "(u|U|ser|user|name|[.\\[\\] _-]|\u{a0}){0,6}",
            asked in prop::sample::select(vec!["username", "user_name", "user[name]", "user.name"]),
        ) {
            prop_assert!(!is_read_as(&sent, asked) || compare(&sent, asked) != NameMatch::Other, "{sent:?}");
        }
    }

    fn form(text: &str) -> Result<StrictPairs, NotUnderstood> {
        StrictPairs::read(text.as_bytes(), PairsIn::Form, Charset::Utf8)
    }

    #[track_caller]
    fn check_pairs(text: &str, expected: Result<Presence, NotUnderstood>) {
        let found = form(text).and_then(|pairs| pairs.presence(text.as_bytes(), "username"));
        assert_eq!(found, expected, "{text}");
        let judged = form(text).and_then(|pairs| pairs.judge(text.as_bytes(), "username"));
        assert_eq!(judged, expected.map(|_| ()), "{text}");
    }

    #[test]
    fn a_form_as_clients_encode_it_is_understood() {
        check_pairs("username=alice&password=x", Ok(Presence::Once));
        check_pairs("password=a%26b%3D+c&username=al%20ice%2Bx", Ok(Presence::Once));
        check_pairs("user%6Eame=caf%C3%A9&note=one%0D%0Atwo", Ok(Presence::Once));
        check_pairs("q=a@b.example,c:d/e?f$g(h)'i'!j*k~l", Ok(Presence::Absent));
        check_pairs("user[email]=x&user%5Bpass%5D=y", Ok(Presence::Absent));
        check_pairs("flag&&x=1&", Ok(Presence::Absent));
        check_pairs("username=alice&username=bob", Ok(Presence::Otherwise));
        check_pairs("UserName=alice", Ok(Presence::Otherwise));
        check_pairs("username=alice&_charset_=utf-8", Ok(Presence::Once));
    }

    #[test]
    fn what_no_client_writes_is_not_understood() {
        for text in
            ["?username=alice", "a=1;username=alice", "username=al ice", "username=%zz", "a=%", "a=%u0061", "a={}"]
        {
            check_pairs(text, Err(NotUnderstood::Form));
        }
        for text in
            ["][username=alice", "username%5B=alice", "user+name=alice", "user.name=alice", "username%00x=alice"]
        {
            check_pairs(text, Err(NotUnderstood::Name));
        }
        check_pairs("%ff=1", Err(NotUnderstood::Name));
        check_pairs("username=alice%00x", Err(NotUnderstood::Value));
        check_pairs("username=alice%ff", Err(NotUnderstood::Value));
        check_pairs("other=alice%ff", Ok(Presence::Absent));
        check_pairs("_charset_=ibm037&username=alice", Err(NotUnderstood::Charset));
        check_pairs("%5Fcharset%5F=utf-16&username=alice", Err(NotUnderstood::Charset));
        check_pairs(&format!("{}username=alice", "a=&".repeat(MOST_FIELDS - 1)), Ok(Presence::Once));
        check_pairs(&format!("{}username=alice", "a=&".repeat(MOST_FIELDS)), Err(NotUnderstood::TooManyFields));
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
            check_pairs(&text, Ok(Presence::Once));
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
