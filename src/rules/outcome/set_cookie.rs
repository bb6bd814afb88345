//! The cookies that an answer sets or deletes.

use jiff::tz::TimeZone;

use crate::wire::head::{Fields, KnownName};
use crate::words::clock::Timestamp;
use crate::words::glob::Glob;

/// Whether the answer sets a cookie whose name matches. A cookie that is deleted again or expires at once does not
/// count. `now` is the moment of the answer by the wall clock.
pub(super) fn sets(fields: &Fields, name: &Glob, now: Timestamp) -> bool {
    answered(fields, now).any(|cookie| !cookie.is_deleted && name.matches(&String::from_utf8_lossy(cookie.name)))
}

/// Whether the answer sets or deletes a cookie whose name matches.
pub(super) fn names(fields: &Fields, name: &Glob) -> bool {
    any_named(fields, |sent| name.matches(&String::from_utf8_lossy(sent)))
}

/// Whether the answer sets or deletes a cookie whose name is wanted.
pub fn any_named(fields: &Fields, is_wanted: impl Fn(&[u8]) -> bool) -> bool {
    fields.get_all(KnownName::SET_COOKIE).filter_map(first_pair).any(|(name, _)| is_wanted(name))
}

/// A cookie that an answer sets or deletes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AnsweredCookie<'h> {
    pub name: &'h [u8],
    /// The value as a browser sends it back.
    pub value: &'h [u8],
    pub is_deleted: bool,
}

/// The cookies that the answer sets or deletes, as they are once it has been read whole: of several lines for one cookie
/// the last one. `now` is the moment of the answer by the wall clock.
pub fn answered(fields: &Fields, now: Timestamp) -> impl Iterator<Item = AnsweredCookie<'_>> {
    let lines = || fields.get_all(KnownName::SET_COOKIE).filter_map(SetCookie::parse);
    let now = moment(fields, now);
    lines().enumerate().filter_map(move |(position, cookie)| {
        let is_last = !lines().skip(position + 1).any(|later| later.is_same(&cookie));
        let is_deleted = cookie.is_deleted(now);
        is_last.then_some(AnsweredCookie { name: cookie.name, value: cookie.value, is_deleted })
    })
}

/// One `Set-Cookie` line, read as browsers read it (RFC 6265, section 5.2).
#[derive(Debug, Default)]
struct SetCookie<'h> {
    name: &'h [u8],
    value: &'h [u8],
    domain: &'h [u8],
    path: &'h [u8],
    /// Whether `Max-Age` is above zero, if there is one.
    positive_age: Option<bool>,
    expires: Option<CookieDate>,
}

impl<'h> SetCookie<'h> {
    fn parse(line: &'h [u8]) -> Option<Self> {
        let (name, value) = first_pair(line)?;
        let mut cookie = Self { name, value, ..Self::default() };
        for (attribute, value) in line.split(|byte| *byte == b';').skip(1).filter_map(pair) {
            match attribute {
                _ if attribute.eq_ignore_ascii_case(b"domain") => cookie.domain = value,
                _ if attribute.eq_ignore_ascii_case(b"path") => cookie.path = value,
                _ if attribute.eq_ignore_ascii_case(b"max-age") => {
                    cookie.positive_age = is_positive_age(value).or(cookie.positive_age);
                }
                _ if attribute.eq_ignore_ascii_case(b"expires") => {
                    cookie.expires = cookie_date(value).or(cookie.expires);
                }
                _ => {}
            }
        }
        Some(cookie)
    }

    /// Whether both lines set the same cookie.
    fn is_same(&self, other: &Self) -> bool {
        self.name == other.name && self.domain.eq_ignore_ascii_case(other.domain) && self.path == other.path
    }

    fn is_deleted(&self, now: CookieDate) -> bool {
        if matches!(self.value, b"" | b"\"\"") {
            return true;
        }
        match (self.positive_age, self.expires) {
            (Some(positive_age), _) => !positive_age,
            (None, Some(expires)) => expires <= now,
            (None, None) => false,
        }
    }
}

/// The name and the value of the cookie of a line.
fn first_pair(line: &[u8]) -> Option<(&[u8], &[u8])> {
    pair(&line[..memchr::memchr(b';', line).unwrap_or(line.len())])
}

fn pair(part: &[u8]) -> Option<(&[u8], &[u8])> {
    let equals = memchr::memchr(b'=', part)?;
    Some((part[..equals].trim_ascii(), part[equals + 1..].trim_ascii()))
}

/// Whether a `Max-Age` is above zero; `None` for a value that browsers ignore.
fn is_positive_age(age: &[u8]) -> Option<bool> {
    let digits = age.strip_prefix(b"-").unwrap_or(age);
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| digits.len() == age.len() && digits.iter().any(|digit| *digit != b'0'))
}

/// Year, month from 0, day, hour, minute, second, all of them GMT.
type CookieDate = (u16, u8, u8, u8, u8, u8);

/// The moment of an answer by the clock of the application or by ours, whichever is the later: what has expired by one of
/// them is deleted.
fn moment(fields: &Fields, now: Timestamp) -> CookieDate {
    let now = date_of(now);
    fields.get(KnownName::DATE).and_then(cookie_date).map_or(now, |date| date.max(now))
}

/// The date of a moment. A moment that is later than all dates is the end of the year 9999.
fn date_of(moment: Timestamp) -> CookieDate {
    let seconds = i64::try_from(moment.as_micros() / 1_000_000).unwrap_or(i64::MAX);
    let moment = jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::MAX);
    let date = moment.to_zoned(TimeZone::UTC).datetime();
    let part = |part: i8| u8::try_from(part).unwrap_or_default();
    let year = u16::try_from(date.year()).unwrap_or_default();
    (year, part(date.month() - 1), part(date.day()), part(date.hour()), part(date.minute()), part(date.second()))
}

/// The date of a cookie, in any of the forms that browsers read (RFC 6265, section 5.1.1).
fn cookie_date(text: &[u8]) -> Option<CookieDate> {
    let is_delimiter = |byte: &u8| !byte.is_ascii_alphanumeric() && *byte != b':' && *byte < 0x80;
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for token in text.split(is_delimiter).filter(|token| !token.is_empty()) {
        if time.is_none() && token.contains(&b':') {
            time = time_of_day(token);
        } else if let Some(number) = number(token) {
            match token.len() {
                1 | 2 if day.is_none() => day = u8::try_from(number).ok(),
                2 | 4 if year.is_none() => year = Some(number),
                _ => {}
            }
        } else if month.is_none() {
            month = MONTHS.iter().position(|name| token.get(..3).is_some_and(|start| start.eq_ignore_ascii_case(name)));
        }
    }
    let (hour, minute, second) = time?;
    let year = match year? {
        short @ 0..70 => 2000 + short,
        short @ 70..100 => 1900 + short,
        year => year,
    };
    Some((year, u8::try_from(month?).ok()?, day?, hour, minute, second))
}

fn time_of_day(token: &[u8]) -> Option<(u8, u8, u8)> {
    let mut parts = token.split(|byte| *byte == b':').map(|part| number(part).and_then(|part| u8::try_from(part).ok()));
    let time = (parts.next()??, parts.next()??, parts.next()??);
    parts.next().is_none().then_some(time)
}

fn number(digits: &[u8]) -> Option<u16> {
    std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
}

const MONTHS: [&[u8]; 12] =
    [b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec"];

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(lines: &[&str]) -> Fields {
        let mut fields: Fields = lines.iter().map(|line| (KnownName::SET_COOKIE, line)).collect();
        fields.append(KnownName::DATE, b"Tue, 10 Mar 2026 12:00:00 GMT");
        fields
    }

    /// At noon on 10 March 2026, as in `Date`.
    const NOW: Timestamp = Timestamp::from_micros(1_773_144_000_000_000);

    #[track_caller]
    fn check(glob: &str, lines: &[&str], expected: bool) {
        assert_eq!(sets(&answer(lines), &Glob::cased(glob), NOW), expected, "{glob} in {lines:?}");
    }

    #[test]
    fn a_name_may_be_a_glob() {
        let wordpress = ["wordpress_test_cookie=WP; path=/", "wordpress_logged_in_a7b8=alice%7C1; path=/; HttpOnly"];
        check("wordpress_logged_in_*", &wordpress, true);
        check("wordpress_logged_in_*", &wordpress[..1], false);
        check("Wordpress_logged_in_*", &wordpress, false);
        check("wordpress_logged_in_????", &wordpress, true);
        check("logged_in", &wordpress, false);
        check("*", &[], false);
    }

    #[test]
    fn what_expires_at_once_is_not_set() {
        for line in [
            "sid=; Path=/",
            "sid=\"\"",
            "sid=x; max-age=0",
            "sid=x; Max-Age=-1",
            "sid=x; expires=Thu, 01 Jan 1970 00:00:00 GMT",
            "sid=x; expires=Thu, 01-Jan-70 00:00:01 GMT",
            "sid=x; Expires=Mon, 11-Oct-1999 22:00:00 GMT",
            "sid=x; Expires=Tue Mar 10 11:59:59 2026",
            "sid=+; expires=Mon, 10 Mar 2025 12:00:00 GMT; path=/",
        ] {
            check("sid", &[line], false);
        }
        for line in [
            "sid=x",
            "sid=x; Max-Age=600; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
            "sid=x; Max-Age=; Expires=never",
            "sid=x; Expires=Tue, 10 Mar 2026 12:00:01 GMT",
            "sid=x; Expires=Wed, 31-Dec-69 23:59:59 GMT",
            "sid=1970",
        ] {
            check("sid", &[line], true);
        }
    }

    #[test]
    fn what_has_expired_by_the_clock_of_either_side_is_not_set() {
        let is_set = |date: Option<&str>, expires: &str| {
            let mut answer: Fields =
                [(KnownName::SET_COOKIE, format!("sid=x; Expires={expires}"))].into_iter().collect();
            if let Some(date) = date {
                answer.append(KnownName::DATE, date.as_bytes());
            }
            sets(&answer, &Glob::cased("sid"), NOW)
        };
        let (before, at, later) =
            ("Tue, 10 Mar 2026 11:59:59 GMT", "Tue, 10 Mar 2026 12:00:00 GMT", "Tue, 10 Mar 2026 12:00:01 GMT");
        for date in [None, Some("yesterday"), Some(at), Some("Mon, 09 Mar 2026 12:00:00 GMT")] {
            assert!(
                !is_set(date, "Mon, 11-Oct-1999 22:00:00 GMT") && !is_set(date, before) && !is_set(date, at),
                "{date:?}"
            );
            assert!(is_set(date, later), "{date:?}");
        }
        assert!(!is_set(Some("Wed, 11 Mar 2026 12:00:00 GMT"), later), "the clock of the application is ahead");
    }

    #[test]
    fn a_moment_has_a_date() {
        assert_eq!(date_of(Timestamp::EPOCH), (1970, 0, 1, 0, 0, 0));
        assert_eq!(date_of(NOW), (2026, 2, 10, 12, 0, 0));
        assert_eq!(date_of(Timestamp::from_micros(u64::MAX)).0, 9999);
    }

    #[test]
    fn of_several_lines_for_one_cookie_the_last_one_counts() {
        check("sid", &["sid=x; Path=/", "sid=; Path=/; Max-Age=0"], false);
        check("sid", &["sid=; Path=/; Max-Age=0", "sid=x; Path=/"], true);
        check("sid", &["sid=x; Path=/app", "sid=; Path=/; Max-Age=0"], true);
    }
}
