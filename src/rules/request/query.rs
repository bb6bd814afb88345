//! Values of queries and cookies, in order and with repetitions.

use std::borrow::Cow;

use super::not_understood::NotUnderstood;
use super::path::queries_within;
use super::strict::content_type::Charset;
use super::strict::pairs::{PairsIn, StrictPairs};
use super::strict::{Presence, cookies};
use super::urlencoded;
use crate::rules::request::text;
use crate::rules::request::text::{begins_otherwise, flattened, is_read_as};
use crate::rules::request::urlencoded::Escapes;
use crate::wire::head::{Fields, KnownName};

/// The query of a request.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RequestQuery<'r> {
    /// As it came, without `?`; empty when there is none.
    sent: &'r str,
    /// The text after an escaped question mark in the path: servers that decode the path first read it as a query. One
    /// text for each layer of escapes.
    in_path: Vec<String>,
    /// The path as it came.
    path: &'r str,
}

impl<'r> RequestQuery<'r> {
    /// `path` is the path as it came.
    pub fn new(path: &'r str, sent: Option<&'r str>) -> Self {
        Self { sent: sent.unwrap_or_default(), in_path: queries_within(path), path }
    }

    pub fn is_empty(&self) -> bool {
        self.sent.is_empty() && self.in_path.is_empty()
    }

    /// Whether applications may read different queries.
    pub fn is_ambiguous(&self) -> bool {
        !self.in_path.is_empty()
    }

    /// Every query that an application may read, the one that was sent first.
    pub fn readings(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.sent).chain(self.in_path.iter().map(String::as_str))
    }

    /// Every value of `name`, percent-decoded, `+` as space.
    ///
    /// A query that applications read differently yields every reading: in `a=1;b=2` the `a` is `1;b=2` and `1`.
    pub fn values<'q>(&'q self, name: &'q str) -> impl Iterator<Item = Cow<'q, str>> {
        self.readings().flat_map(move |query| urlencoded::values(query.as_bytes(), name))
    }

    /// The values of `name` in the query that was sent.
    pub fn sent_values<'q>(&'q self, name: &'q str) -> impl Iterator<Item = Cow<'q, str>> {
        urlencoded::values(self.sent.as_bytes(), name)
    }

    /// The values of the path's parameters of this name, in letters of either case: servers of Java read a session from
    /// `/login;jsessionid=1` as from a cookie.
    pub fn path_parameters<'q>(&'q self, name: &'q str) -> impl Iterator<Item = &'q str> {
        let parameters = self.path.split('/').flat_map(|segment| segment.split(';').skip(1));
        let pairs = parameters.filter_map(|parameter| parameter.split_once('='));
        pairs.filter(move |(sent, _)| sent.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Whether [`Self::values`] surely finds every value that some application reads.
    pub fn judge(&self, name: &str) -> Result<(), NotUnderstood> {
        if self.is_ambiguous() {
            return Err(NotUnderstood::QueryInPath);
        }
        if self.sent.is_empty() {
            return Ok(());
        }
        self.strict()?.judge(self.sent.as_bytes(), name).map_err(of_query)
    }

    /// Whether every application reads the parameter alike: it occurs once, under exactly this name.
    pub fn is_sole(&self, name: &str) -> bool {
        !self.is_ambiguous()
            && self.strict().and_then(|pairs| pairs.presence(self.sent.as_bytes(), name)) == Ok(Presence::Once)
    }

    fn strict(&self) -> Result<StrictPairs, NotUnderstood> {
        StrictPairs::read(self.sent.as_bytes(), PairsIn::Query, Charset::Utf8)
    }
}

fn of_query(reason: NotUnderstood) -> NotUnderstood {
    if reason == NotUnderstood::Name { NotUnderstood::QueryName } else { reason }
}

/// Whether [`cookie_values`] surely finds every value that some application reads.
pub fn judge_cookies(fields: &Fields, name: &str) -> Result<(), NotUnderstood> {
    cookies::judge(fields, name)
}

/// Every value of the cookie `name`, over all `Cookie` lines, without quotes around it.
///
/// A value with escapes is yielded as sent and decoded, and a value with a NUL in each of its readings.
pub fn cookie_values<'r>(fields: &'r Fields, name: &'r str) -> impl Iterator<Item = Cow<'r, str>> {
    cookies(fields)
        .filter(move |(sent, _)| is_cookie(sent, name))
        .flat_map(|(_, value)| readings(value.trim_ascii()).into_iter().flatten())
        .flat_map(text::readings)
}

/// Every value of the cookies whose names some application may read as one that is `named`, with the name as sent, in the
/// same readings.
pub fn cookie_values_like(
    fields: &Fields,
    named: impl Fn(&str) -> bool,
) -> impl Iterator<Item = (&[u8], Cow<'_, str>)> {
    cookies(fields)
        .filter(move |(sent, _)| is_cookie_like(sent, &named))
        .flat_map(|(sent, value)| readings(value.trim_ascii()).into_iter().flatten().map(move |value| (sent, value)))
        .flat_map(|(sent, value)| text::readings(value).into_iter().map(move |value| (sent, value)))
}

/// Whether some application may read a cookie of one name as the one that is asked for.
pub fn is_cookie(sent: &[u8], asked: &str) -> bool {
    sent == asked.as_bytes()
        || !begins_otherwise(sent, asked.as_bytes()) && is_read_as(&urlencoded::text(sent.into()), asked)
}

/// Whether some application may read a cookie as one that is `named`.
pub fn is_cookie_like(sent: &[u8], named: impl Fn(&str) -> bool) -> bool {
    named(&flattened(&urlencoded::text(sent.into())))
}

/// Every name and value, over all `Cookie` lines.
fn cookies(fields: &Fields) -> impl Iterator<Item = (&[u8], &[u8])> {
    fields
        .get_all(KnownName::COOKIE)
        .flat_map(pieces)
        .filter_map(|cookie| memchr::memchr(b'=', cookie).map(|equals| (&cookie[..equals], &cookie[equals + 1..])))
        .map(|(sent, value)| (sent.trim_ascii(), value))
}

/// The parts of a line between semicolons.
fn pieces(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest?;
        let end = memchr::memchr(b';', line);
        rest = end.map(|end| &line[end + 1..]);
        Some(&line[..end.unwrap_or(line.len())])
    })
}

fn readings(value: &[u8]) -> [Option<Cow<'_, str>>; 3] {
    let (plain, quoted) = match value {
        [b'"', inner @ .., b'"'] => (inner, true),
        _ => (value, false),
    };
    let unescaped = (quoted && plain.contains(&b'\\')).then(|| urlencoded::text(Cow::Owned(unescaped(plain))));
    let decoded = urlencoded::decode(plain, Escapes::default()).map(|bytes| urlencoded::text(Cow::Owned(bytes)));
    [Some(urlencoded::text(Cow::Borrowed(plain))), unescaped, decoded]
}

/// A quoted value as Python reads it: `\ooo` is an octal byte, any other `\x` is `x`.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    loop {
        rest = match rest {
            [] => return plain,
            [b'\\', high @ b'0'..=b'3', middle @ b'0'..=b'7', low @ b'0'..=b'7', others @ ..] => {
                plain.push(((high - b'0') << 6) | ((middle - b'0') << 3) | (low - b'0'));
                others
            }
            [b'\\', byte, others @ ..] | [byte, others @ ..] => {
                plain.push(*byte);
                others
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(lines: &[&str], expected: &[&str]) {
        let fields = lines.iter().map(|line| (KnownName::COOKIE, line)).collect();
        assert_eq!(cookie_values(&fields, "id").collect::<Vec<_>>(), expected, "{lines:?}");
    }

    #[test]
    fn a_query_yields_every_value_of_a_name_in_order() {
        let values = |path: &str, sent: &str| {
            let query = RequestQuery::new(path, Some(sent));
            (query.values("a").map(Cow::into_owned).collect::<Vec<_>>(), query.judge("a").is_ok(), query.is_sole("a"))
        };
        let found = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
        assert_eq!(values("/", "a=1&b=2&a=%33"), (found(&["1", "3"]), true, false));
        assert_eq!(values("/", ""), (found(&[]), true, false));
        assert_eq!(values("/x", "a=1"), (found(&["1"]), true, true));
        // Servers that decode the path first read a query behind its question mark.
        assert_eq!(values("/x%3Fa=2", ""), (found(&["2"]), false, false));
        assert_eq!(values("/x%3fa=2", "a=1"), (found(&["1", "2"]), false, false));
        assert_eq!(values("/x%253Fa=2%2526a=3", ""), (found(&["2", "3"]), false, false));
        assert_eq!(values("/x%25253Fa=2", ""), (found(&["2"]), false, false));
        assert_eq!(values("/x%20", "a=1"), (found(&["1"]), true, true));
    }

    #[test]
    fn cookies_are_found_over_all_lines() {
        check(&["id=1"], &["1"]);
        check(&["a=b; id=1; c=d"], &["1"]);
        check(&["id=1;id=2"], &["1", "2"]);
        check(&["a=b", "id=1", "id=2"], &["1", "2"]);
        check(&["ID=1;  id = 2 "], &["1", "2"]);
        check(&["id=a=b"], &["a=b"]);
        check(&["id="], &[""]);
        check(&["id", "=1", ";;"], &[]);
        check(&["xid=1; id2=1"], &[]);
    }

    #[test]
    fn a_cookie_is_yielded_in_every_reading() {
        check(&["id=\"1\""], &["1"]);
        check(&["id=\""], &["\""]);
        check(&["id=a%20b"], &["a%20b", "a b"]);
        check(&[r#"id="\141b\"""#], &[r#"\141b\""#, "ab\""]);
        check(&[r"id=\141b"], &[r"\141b"]);
    }

    proptest! {
        #[test]
        fn any_cookie_line_is_read(line in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(value) = HeaderValue::from_bytes(&line) {
                let fields = Fields::from_iter([(KnownName::COOKIE, value)]);
                let _ = cookie_values(&fields, "id").count();
            }
        }
    }
}
