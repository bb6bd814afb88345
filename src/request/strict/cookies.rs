//! The cookie header as browsers and libraries write it.

use std::borrow::Cow;

use crate::byte_count::count_bytes;
use crate::head::Fields;
use crate::head::KnownName;
use crate::request::NotUnderstood;
use crate::request::name::begins_otherwise;
use crate::request::name::is_read_as;
use crate::request::percent;
use crate::request::percent::Escapes;

/// Whether every application finds the values of this cookie that the gateway finds.
///
/// RFC 6265: `name=value; name=value`. Beside that, browsers send whatever a script has stored, such as JSON. Such a value
/// does not matter where another cookie is asked for, as long as nobody finds the end of a cookie in it.
pub(crate) fn judge(fields: &Fields, asked: &str) -> Result<(), NotUnderstood> {
    fields.get_all(KnownName::COOKIE).into_iter().try_for_each(|line| judge_line(line, LineIs::of(line), asked))
}

fn judge_line(line: &[u8], line_is: LineIs, asked: &str) -> Result<(), NotUnderstood> {
    let mut rest = Some(line);
    while let Some(line) = rest {
        let end = memchr::memchr(b';', line);
        rest = match end {
            None => None,
            Some(end) => Some(line[end + 1..].strip_prefix(b" ").ok_or(NotUnderstood::Cookies)?),
        };
        judge_pair(&line[..end.unwrap_or(line.len())], line_is, asked)?;
    }
    Ok(())
}

fn judge_pair(pair: &[u8], line_is: LineIs, asked: &str) -> Result<(), NotUnderstood> {
    let equals = memchr::memchr(b'=', pair).ok_or(NotUnderstood::Cookies)?;
    let (name, value) = (&pair[..equals], &pair[equals + 1..]);
    let is_pair = match line_is {
        LineIs::Grammar => matches!(name, [first, ..] if *first != b'$'),
        LineIs::Plain => is_name(name) && is_one_value(value),
        LineIs::Odd => is_name(name) && is_one_value(value) && has_one_end(value),
    };
    if !is_pair {
        return Err(NotUnderstood::Cookies);
    }
    if name == asked.as_bytes() {
        let inner = value.strip_prefix(b"\"").and_then(|inner| inner.strip_suffix(b"\"")).unwrap_or(value);
        let is_plain = line_is == LineIs::Grammar || inner.iter().copied().all(is_cookie_octet);
        return if is_plain { Ok(()) } else { Err(NotUnderstood::Cookies) };
    }
    if begins_otherwise(name, asked.as_bytes()) && memchr::memchr(b'%', name).is_none() {
        return Ok(());
    }
    let sent = percent::text(name.into());
    let decoded = percent::decode(name, Escapes { plus: true, code_units: false }).map(Cow::Owned).map(percent::text);
    let is_same = sent.eq_ignore_ascii_case(asked);
    let is_doubtful = is_read_as(&sent, asked) && !is_same || decoded.is_some_and(|name| is_read_as(&name, asked));
    if is_doubtful { Err(NotUnderstood::CookieName) } else { Ok(()) }
}

/// What the bytes of a whole line say of its cookies.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum LineIs {
    /// Names and values are those of the grammar, if a blank stands behind each semicolon.
    Grammar,
    /// No byte has a meaning but those that separate cookies.
    Plain,
    Odd,
}

impl LineIs {
    fn of(line: &[u8]) -> Self {
        let separators = memchr::memchr_iter(b';', line).count();
        // Where a blank stands behind each semicolon, there is no room for any other byte.
        if count_bytes(line, is_cookie_octet) + 2 * separators == line.len() {
            return Self::Grammar;
        }
        if count_bytes(line, is_plain_byte) == line.len() { Self::Plain } else { Self::Odd }
    }
}

/// Whether no application that trims values, or separates cookies by blanks, finds another value.
fn is_one_value(value: &[u8]) -> bool {
    let holds_another = || memchr::memchr(b' ', value).is_some_and(|blank| value[blank..].contains(&b'='));
    value.trim_ascii() == value && !holds_another()
}

fn is_name(name: &[u8]) -> bool {
    let is_name_byte = |byte: &u8| byte.is_ascii_graphic() && !b"\",;=\\".contains(byte);
    !name.is_empty() && name[0] != b'$' && name.iter().all(is_name_byte)
}

/// Whether an application that knows quotes, or separates cookies by commas, ends the value where others do.
fn has_one_end(value: &[u8]) -> bool {
    let is_value_byte = |byte: &u8| matches!(byte, b' '..=b'~' | 0x80..) && !matches!(byte, b'\\' | b';');
    let ends_at_a_comma = || memchr::memchr(b',', value).is_some_and(|comma| value[comma..].contains(&b'='));
    value.iter().all(is_value_byte) && memchr::memchr_iter(b'"', value).count().is_multiple_of(2) && !ends_at_a_comma()
}

// As comparisons alone, which the compiler does for many bytes at once.

fn is_plain_byte(byte: u8) -> bool {
    matches!(byte, b' '..=b'!' | b'#'..=b'+' | b'-'..=b'[' | b']'..=b'~' | 0x80..)
}

fn is_cookie_octet(byte: u8) -> bool {
    (b'!'..=b'~').contains(&byte) && byte != b'"' && byte != b',' && byte != b';' && byte != b'\\'
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(lines: &[&str], expected: Result<(), NotUnderstood>) {
        let fields = lines.iter().map(|line| (KnownName::COOKIE, line)).collect();
        assert_eq!(judge(&fields, "sid"), expected, "{lines:?}");
    }

    #[test]
    fn what_browsers_send_is_understood() {
        for lines in [
            &[][..],
            &["sid=S1"],
            &["a=b; sid=S1; c=d"],
            &["sid=\"S1\""],
            &["sid=one; sid=two"],
            &["a=b", "sid=S1"],
            &["sid=a%20b=="],
            &["consent={\"a\":1,\"b\":\"x y\"}; sid=S1"],
            &["connect.sid=x; SID=y; sid=S1"],
            &["x[y]=1; _ga=GA1.2.3; sid="],
        ] {
            check(lines, Ok(()));
        }
    }

    #[test]
    fn what_applications_separate_differently_is_not_understood() {
        for line in [
            "a=b;sid=S1",
            "a=b;  sid=S1",
            "a=b ; sid=S1",
            "a=b;\tsid=S1",
            "sid =S1",
            "sid= S1",
            "sid=S1;",
            "sid",
            "=x; sid=S1",
            "a=\"x; sid=decoy\"; sid=S1",
            "a=\"x\\\"; sid=decoy; b=\"",
            "a=b, sid=S1",
            "a=b,sid=S1",
            "a=b sid=S1",
            "a=b sid=decoy; sid=S1",
            "$Version=1; sid=S1",
            "sid=a b",
            "sid=a,b",
            "sid=a\u{e9}",
            "",
        ] {
            check(&[line], Err(NotUnderstood::Cookies));
        }
        for line in ["sid[0]=x", "s%69d=x", "[sid]=x"] {
            check(&[line], Err(NotUnderstood::CookieName));
        }
    }

    proptest! {
        #[test]
        fn what_is_known_of_the_whole_line_changes_no_judgement(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    "a", "sid", "$", "%69", "=", ";", "; ", " ", ",", "\"", "\\", "[", "\t", "\u{7f}", "\u{e9}", "{\"a\":1}",
                ]),
                0..12,
            ),
        ) {
            let line = pieces.concat();
            let line = line.as_bytes();
            prop_assert_eq!(judge_line(line, LineIs::of(line), "sid"), judge_line(line, LineIs::Odd, "sid"));
        }
    }
}
