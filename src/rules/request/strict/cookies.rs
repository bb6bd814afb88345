//! The cookie header as browsers and libraries write it.

use std::borrow::Cow;

use crate::rules::request::text::{MAX_LENGTH, begins_otherwise, is_read_as};
use crate::rules::request::urlencoded::Escapes;
use crate::rules::request::{NotUnderstood, urlencoded};
use crate::wire::head::{Fields, KnownName};
use crate::words::base64;
use crate::words::digits::count_bytes;

/// Whether every application finds the values of this cookie that the gateway finds.
///
/// RFC 6265: `name=value; name=value`. Browsers also send values that scripts have stored, such as JSON. Such a value
/// does not matter for another cookie, as long as no application finds the end of a cookie in it.
pub(crate) fn judge(fields: &Fields, asked: &str) -> Result<(), NotUnderstood> {
    fields.get_all(KnownName::COOKIE).into_iter().try_for_each(|line| judge_line(line, LineForm::of(line), asked))
}

fn judge_line(line: &[u8], line_form: LineForm, asked: &str) -> Result<(), NotUnderstood> {
    let mut rest = Some(line);
    while let Some(line) = rest {
        let end = memchr::memchr(b';', line);
        rest = match end {
            None => None,
            Some(end) => Some(line[end + 1..].strip_prefix(b" ").ok_or(NotUnderstood::Cookies)?),
        };
        judge_pair(&line[..end.unwrap_or(line.len())], line_form, asked)?;
    }
    Ok(())
}

fn judge_pair(pair: &[u8], line_form: LineForm, asked: &str) -> Result<(), NotUnderstood> {
    let equals = memchr::memchr(b'=', pair).ok_or(NotUnderstood::Cookies)?;
    let (name, value) = (&pair[..equals], &pair[equals + 1..]);
    let is_pair = match line_form {
        LineForm::Grammar => matches!(name, [first, ..] if *first != b'$'),
        LineForm::Plain => is_name(name) && is_one_value(value),
        LineForm::Odd => is_name(name) && is_one_value(value) && has_one_end(value),
    };
    if !is_pair {
        return Err(NotUnderstood::Cookies);
    }
    if name == asked.as_bytes() {
        let inner = value.strip_prefix(b"\"").and_then(|inner| inner.strip_suffix(b"\"")).unwrap_or(value);
        let is_plain = line_form == LineForm::Grammar || inner.iter().copied().all(is_cookie_octet);
        return if is_plain { Ok(()) } else { Err(NotUnderstood::Cookies) };
    }
    if begins_otherwise(name, asked.as_bytes()) && memchr::memchr(b'%', name).is_none() {
        return Ok(());
    }
    let sent = urlencoded::text(name.into());
    let decoded =
        urlencoded::decode(name, Escapes { plus: true, code_units: false }).map(Cow::Owned).map(urlencoded::text);
    let is_same = sent.eq_ignore_ascii_case(asked);
    let is_doubtful = is_read_as(&sent, asked) && !is_same || decoded.is_some_and(|name| is_read_as(&name, asked));
    if is_doubtful { Err(NotUnderstood::CookieName) } else { Ok(()) }
}

/// How surely a whole line splits into its cookies.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum LineForm {
    /// Names and values follow the grammar, and a blank stands after each semicolon.
    Grammar,
    /// Only the separators of cookies have a meaning.
    Plain,
    Odd,
}

impl LineForm {
    fn of(line: &[u8]) -> Self {
        let separators = memchr::memchr_iter(b';', line).filter(|end| line.get(end + 1) == Some(&b' ')).count();
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

// `Authorization` as clients write it.

/// Whether every application finds the bearer token that the gateway finds, or none.
pub(crate) fn judge_bearer(fields: &Fields) -> Result<(), NotUnderstood> {
    judge_scheme(fields, "bearer", |token| !token.is_empty() && token.iter().copied().all(is_of_a_token))
}

/// Judges the user name of the scheme Basic.
pub(crate) fn judge_basic(fields: &Fields) -> Result<(), NotUnderstood> {
    judge_scheme(fields, "basic", |encoded| {
        let Some(decoded) = base64::decode_strict(encoded) else { return false };
        let Ok(text) = String::from_utf8(decoded) else { return false };
        text.split_once(':').is_some_and(|(user, _)| user.len() <= MAX_LENGTH && !user.chars().any(char::is_control))
    })
}

/// One line, `Scheme credentials`. A line of another scheme holds no such credential, unless it speaks of it.
fn judge_scheme(fields: &Fields, scheme: &str, is_strict: impl Fn(&[u8]) -> bool) -> Result<(), NotUnderstood> {
    let mut lines = fields.get_all(KnownName::AUTHORIZATION);
    let Some(line) = lines.next() else { return Ok(()) };
    let end = memchr::memchr(b' ', line).unwrap_or(line.len());
    let (sent, credentials) = (&line[..end], line.get(end + 1..).unwrap_or_default());
    let is_scheme = !sent.is_empty() && sent.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
    let is_one = if sent.eq_ignore_ascii_case(scheme.as_bytes()) {
        is_strict(credentials)
    } else {
        !line.windows(scheme.len()).any(|found| found.eq_ignore_ascii_case(scheme.as_bytes()))
    };
    if lines.next().is_none() && is_scheme && is_one { Ok(()) } else { Err(NotUnderstood::Credentials) }
}

fn is_of_a_token(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\",;\\".contains(&byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fields(lines: &[&str]) -> Fields {
        lines.iter().map(|line| (KnownName::AUTHORIZATION, line)).collect()
    }

    #[test]
    fn credentials_as_clients_write_them_are_understood() {
        for line in [
            "Bearer abc",
            "bearer a.b-c_d~e+f/g==",
            "Bearer 1|laravel",
            "Basic YTpi",
            "Digest username=\"x\", realm=\"y\"",
        ] {
            assert_eq!(judge_bearer(&fields(&[line])), Ok(()), "{line}");
        }
        for line in ["Basic YWxpY2U6c2VjcmV0", "basic YWxpY2U6eA==", "Bearer abc", "Basic w6k6eA=="] {
            assert_eq!(judge_basic(&fields(&[line])), Ok(()), "{line}");
        }
        assert_eq!((judge_bearer(&fields(&[])), judge_basic(&fields(&[]))), (Ok(()), Ok(())));
    }

    #[test]
    fn what_applications_read_differently_is_not_understood() {
        let odd = Err(NotUnderstood::Credentials);
        for line in [
            "Bearer  abc",
            "Bearer\tabc",
            "Bearer",
            "Bearer ",
            "Bearerabc",
            "Bearer a, Bearer b",
            "Bearer \"a\"",
            "X bearer=a",
        ] {
            assert_eq!(judge_bearer(&fields(&[line])), odd, "{line}");
        }
        for line in [
            "Basic YWxpY2U6eA",
            "Basic YWxp Y2U6eA==",
            "Basic YWxpY2U6eB==",
            "Basic YWxp!Y2U6eA==",
            "Basic w78_w786eA==",
            "Basic YWxpY2U=",
            "Basic YWxpY2UAOng=",
            "Basic 6Tp4",
            "Basic",
        ] {
            assert_eq!(judge_basic(&fields(&[line])), odd, "{line}");
        }
        assert_eq!(judge_bearer(&fields(&["Bearer a", "Bearer b"])), odd);
    }

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
            " sid=; ;",
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
            prop_assert_eq!(judge_line(line, LineForm::of(line), "sid"), judge_line(line, LineForm::Odd, "sid"));
        }
    }
}
