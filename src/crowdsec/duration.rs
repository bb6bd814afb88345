//! Durations as Go prints them: `3h59m59.5s`, `-1h2m0s`.

use std::time::Duration;

/// Parses a duration; `None`: it is none. A negative one is zero, one that is too long is the longest.
///
/// The grammar is that of `time.ParseDuration` in Go's standard library.
pub fn parse(text: &str) -> Option<Duration> {
    let (is_negative, text) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let (mut rest, mut nanos) = (text, 0_u128);
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let (number, unit) = rest.split_at(digits);
        let end = unit.find(|letter: char| letter.is_ascii_digit() || letter == '.').unwrap_or(unit.len());
        nanos = nanos.saturating_add(scaled(number, nanos_of(&unit[..end])?)?);
        rest = &unit[end..];
    }
    if text.is_empty() {
        return None;
    }
    let nanos = if is_negative { 0 } else { nanos };
    Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
}

fn nanos_of(unit: &str) -> Option<u128> {
    Some(match unit {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => NANOS,
        "m" => 60 * NANOS,
        "h" => 3600 * NANOS,
        _ => return None,
    })
}

/// A number with a fraction, in units of so many nanoseconds.
fn scaled(number: &str, unit: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let value = |digits: &str| {
        digits.bytes().fold(0_u128, |sum, digit| sum.saturating_mul(10).saturating_add((digit - b'0').into()))
    };
    // Further digits are less than a nanosecond.
    let fraction = &fraction[..fraction.len().min(MOST_DIGITS)];
    let below = value(fraction) * unit / 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    Some(value(whole).saturating_mul(unit).saturating_add(below))
}

const NANOS: u128 = 1_000_000_000;

/// An hour has fewer nanoseconds than this many digits count.
const MOST_DIGITS: usize = 15;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, millis: u64) {
        assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
    }

    #[test]
    fn durations_of_go_are_read() {
        check("3h59m59.5s", 14_399_500);
        check("600s", 600_000);
        check("1m0.25s", 60_250);
        check("1500ms", 1500);
        check("2000000ns", 2);
        check("5000\u{b5}s", 5);
        check("0", 0);
        check("0s", 0);
        check(".5s", 500);
        check("+1s", 1000);
        check("-4h0m1s", 0);
    }

    #[test]
    fn a_huge_duration_is_the_longest() {
        let longest = Some(Duration::from_nanos(u64::MAX));
        assert_eq!(parse("99999999999999999999h"), longest);
        assert_eq!(parse(&format!("{}h", "9".repeat(1000))), longest);
        assert_eq!(parse(&format!("1.{}s", "9".repeat(1000))).map(|span| span.as_secs()), Some(1));
    }

    #[test]
    fn what_is_no_duration_is_none() {
        for text in ["", "-", "s", "1", "1d", "1.2.3s", ".s", "1h-2m", "1 s", "\u{e9}", "1\u{e9}"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_sent_is_read_or_refused(text in ".{0,40}", millis in 0..10_000_000_000_u64) {
            parse(&text);
            let (hours, rest) = (millis / 3_600_000, millis % 3_600_000);
            let printed = format!("{hours}h{}m{}.{:03}s", rest / 60_000, rest % 60_000 / 1000, rest % 1000);
            prop_assert_eq!(parse(&printed), Some(Duration::from_millis(millis)));
        }
    }
}
