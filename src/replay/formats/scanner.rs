//! Reads a line of text from its start, field by field.

use std::borrow::Cow;
use std::time::Duration;

use jiff::civil::{Date, Time};
use jiff::tz::Offset;
use memchr::{memchr, memchr2};

use crate::words::clock::Timestamp;

/// The rest of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scanner<'l> {
    pub(super) rest: &'l [u8],
}

impl<'l> Scanner<'l> {
    pub(super) fn new(line: &'l [u8]) -> Self {
        Self { rest: line }
    }

    /// Everything before the next space, which is skipped, or to the end of the line. `None`: nothing is left.
    pub(super) fn word(&mut self) -> Option<&'l [u8]> {
        let end = memchr(b' ', self.rest).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.get(1..).unwrap_or_default();
        (!word.is_empty()).then_some(word)
    }

    pub(super) fn text_word(&mut self) -> Option<&'l str> {
        str::from_utf8(self.word()?).ok()
    }

    /// Everything before this byte, which is skipped.
    pub(super) fn until(&mut self, end: u8) -> Option<&'l [u8]> {
        let at = memchr(end, self.rest)?;
        let (text, rest) = self.rest.split_at(at);
        self.rest = &rest[1..];
        Some(text)
    }

    /// Skips these bytes.
    pub(super) fn skip(&mut self, expected: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(expected)?;
        Some(())
    }

    /// The text between two quotation marks, without its escapes, and skips a space behind it.
    pub(super) fn quoted(&mut self) -> Option<Cow<'l, [u8]>> {
        let text = self.rest.strip_prefix(b"\"")?;
        let (mut at, mut has_escapes) = (0, false);
        loop {
            let found = at + memchr2(b'"', b'\\', &text[at..])?;
            if text[found] == b'"' {
                at = found;
                break;
            }
            has_escapes = true;
            at = found + 2;
            if at > text.len() {
                return None;
            }
        }
        self.rest = &text[at + 1..];
        self.rest = self.rest.strip_prefix(b" ").unwrap_or(self.rest);
        Some(if has_escapes { Cow::Owned(unescaped(&text[..at])) } else { Cow::Borrowed(&text[..at]) })
    }
}

/// `\x22`, `\"`, `\\` and `\n` as nginx and Apache write them.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr(b'\\', rest) {
        plain.extend_from_slice(&rest[..at]);
        let (byte, length) = match &rest[at + 1..] {
            [b'x' | b'X', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                (hex(*high) << 4 | hex(*low), 4)
            }
            [b'n', ..] => (b'\n', 2),
            [b'r', ..] => (b'\r', 2),
            [b't', ..] => (b'\t', 2),
            [byte @ (b'"' | b'\\'), ..] => (*byte, 2),
            _ => (b'\\', 1),
        };
        plain.push(byte);
        rest = &rest[at + length..];
    }
    plain.extend_from_slice(rest);
    plain
}

/// The value of a hexadecimal digit.
pub(super) fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20).wrapping_sub(b'a').wrapping_add(10),
    }
}

// Moments as logs write them.

const HALF_A_MICROSECOND: Duration = Duration::from_nanos(500);

/// The length of `21/Nov/2026:07:58:52`.
const DATE_AND_TIME: usize = 20;

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// `21/Nov/2026:07:58:52 +0100`, or `21/Nov/2026:07:58:52.123` in UTC.
pub(super) fn of_common_log(text: &[u8]) -> Option<Timestamp> {
    let (date, rest) = text.split_at_checked(DATE_AND_TIME)?;
    let number = |from: usize, to: usize| digits(&date[from..to]);
    let separators = [(2, b'/'), (6, b'/'), (11, b':'), (14, b':'), (17, b':')];
    if separators.iter().any(|&(at, byte)| date[at] != byte) {
        return None;
    }
    let month = MONTHS.iter().position(|name| name.as_bytes().eq_ignore_ascii_case(&date[3..6]))?;
    let year = i16::try_from(number(7, 11)?).ok()?;
    let small = |value: i64| i8::try_from(value).ok();
    let date = Date::new(year, small(i64::try_from(month).ok()? + 1)?, small(number(0, 2)?)?).ok()?;
    let text = text.get(12..DATE_AND_TIME)?;
    // A leap second is the last one of its minute.
    let second = digits(&text[6..8])?.min(59);
    let time = Time::new(small(digits(&text[0..2])?)?, small(digits(&text[3..5])?)?, small(second)?, 0).ok()?;
    let (millis, zone) = match rest {
        [b'.', a, b, c, zone @ ..] => (digits(&[*a, *b, *c])?, zone),
        zone => (0, zone),
    };
    let offset = match zone {
        [] => 0,
        [b' ', sign @ (b'+' | b'-'), zone @ ..] if zone.len() == 4 => {
            let minutes = digits(&zone[..2])? * 60 + digits(&zone[2..])?;
            if *sign == b'-' { -minutes } else { minutes }
        }
        _ => return None,
    };
    let offset = Offset::from_seconds(i32::try_from(offset * 60).ok()?).ok()?;
    let moment = offset.to_timestamp(date.to_datetime(time)).ok()?;
    Some(of_jiff(moment)? + Duration::from_millis(u64::try_from(millis).ok()?))
}

/// `2026-11-21T07:58:52.123Z`, with any offset and precision.
pub(super) fn of_rfc3339(text: &str) -> Option<Timestamp> {
    of_jiff(text.parse().ok()?)
}

/// `2026/11/21 07:58:52`, with any precision, in UTC.
pub(super) fn of_wall(text: &str) -> Option<Timestamp> {
    let (date, time) = text.split_once(' ')?;
    let date = Date::strptime("%Y/%m/%d", date).ok()?;
    let time: Time = time.parse().ok()?;
    of_jiff(Offset::UTC.to_timestamp(date.to_datetime(time)).ok()?)
}

/// Seconds since 1970, to the nearest microsecond: a moment such as 1795262401.014 has no exact number in binary, and the
/// nearest one may be a little before it.
pub(super) fn of_seconds(seconds: f64) -> Option<Timestamp> {
    let span = Duration::try_from_secs_f64(seconds).ok()?;
    Some(Timestamp::EPOCH + span.saturating_add(HALF_A_MICROSECOND))
}

/// Seconds, milliseconds (`unix_milli_float`) or nanoseconds (`unix_nano`): from 1973 to 5138 none is mistaken for another.
pub(super) fn of_number(number: f64) -> Option<Timestamp> {
    of_seconds(match number {
        ..1e11 => number,
        1e11..1e14 => number / 1e3,
        1e17.. => number / 1e9,
        _ => return None,
    })
}

/// `rfc3339`, `rfc3339_nano`, `iso8601`, `common_log`, `wall`, `wall_milli` or `wall_nano`. The last three name no zone: Caddy
/// writes UTC.
pub(super) fn of_text(text: &str) -> Option<Timestamp> {
    of_rfc3339(text).or_else(|| of_wall(text)).or_else(|| of_common_log(text.as_bytes()))
}

/// `Nov`
pub(super) fn is_month(text: &[u8]) -> bool {
    MONTHS.iter().any(|month| month.as_bytes() == text)
}

/// When something began that ended at `end`.
pub(super) fn before(end: Timestamp, duration: Option<Duration>) -> Timestamp {
    let micros = duration.map_or(0, |duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX));
    Timestamp::from_micros(end.as_micros().saturating_sub(micros))
}

fn of_jiff(moment: jiff::Timestamp) -> Option<Timestamp> {
    u64::try_from(moment.as_microsecond()).ok().map(Timestamp::from_micros)
}

fn digits(text: &[u8]) -> Option<i64> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    is_number.then(|| text.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let found = of_common_log(text.as_bytes()).map(|moment| moment.to_string());
        assert_eq!(found.as_deref(), expected, "{text}");
    }

    #[test]
    fn a_moment_of_the_common_log_is_read_with_its_zone() {
        check("21/Nov/2026:07:58:52 +0000", Some("2026-11-21T07:58:52.000Z"));
        check("21/Nov/2026:07:58:52 +0130", Some("2026-11-21T06:28:52.000Z"));
        check("31/Dec/2026:23:30:00 -0100", Some("2027-01-01T00:30:00.000Z"));
        check("06/Feb/2009:12:14:14.655", Some("2009-02-06T12:14:14.655Z"));
        check("30/Jun/2026:23:59:60 +0000", Some("2026-06-30T23:59:59.000Z"));
    }

    #[test]
    fn seconds_are_read_to_the_nearest_microsecond() {
        for micros in (0..2_000_000).step_by(997).chain([1, 999, 14_000, 999_999]) {
            let text = format!("17952624{:02}.{:06}", micros / 1_000_000, micros % 1_000_000);
            let read = of_seconds(text.parse().unwrap()).unwrap();
            assert_eq!(read.as_micros(), 1_795_262_400_000_000 + micros, "{text}");
        }
        assert_eq!(of_seconds(-1.0), None);
        assert_eq!(of_seconds(f64::NAN), None);
    }

    #[test]
    fn what_is_no_moment_is_none() {
        for text in
            ["", "21/Nov/2026", "32/Nov/2026:07:58:52 +0000", "21/Foo/2026:07:58:52 +0000", "21/Nov/1926:07:58:52"]
        {
            check(text, None);
        }
        check("21/Nov/2026:07:58:52 UTC", None);
    }

    #[track_caller]
    fn check_scanner(line: &str, expected: Option<&[u8]>) {
        assert_eq!(Scanner::new(line.as_bytes()).quoted().as_deref(), expected, "{line}");
    }

    #[test]
    fn quoted_text_ends_at_the_first_mark_that_is_not_escaped() {
        check_scanner(r#""GET / HTTP/1.1" 200"#, Some(b"GET / HTTP/1.1"));
        check_scanner(r#""a\"b\\" c"#, Some(b"a\"b\\"));
        check_scanner(r#""a\x22b\xfF" c"#, Some(b"a\"b\xff"));
        check_scanner(r#""\q\x1""#, Some(br"\q\x1"));
        check_scanner(r#""no end"#, None);
        check_scanner(r#""no end\"#, None);
        check_scanner("bare", None);
    }
}
