//! Durations, sizes, counts and names as people write and read them: `500ms`, `64KiB`, `9,812`, a misspelt key.

use std::cmp::Reverse;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::words::word::Help;

/// A span of time in a configuration: `500ms`, `20s`, `3m`, `1h`, `7d`; printed the same way.
///
/// Whole milliseconds, at most [`Span::MAX`]. A bare `0` is a span; any other number needs its unit.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Span(pub Duration);

/// A number of bytes in a configuration: `64KiB`, `10MiB`, `512B`, `0`; printed the same way.
///
/// A number without a unit is in bytes.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Size(pub u64);

/// Whole seconds, rounded up, so that a client that waits them waits long enough.
pub fn whole_seconds(span: Duration) -> u64 {
    span.as_secs() + u64::from(span.subsec_nanos() > 0)
}

/// `1 mistake`, `3 mistakes`
pub fn counted<N: Copy + fmt::Display + From<u8> + PartialEq>(count: N, noun: &str) -> String {
    let plural = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// `9,812`
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidSpan {
    #[error("`{0}` is not a duration")]
    Malformed(String),
    #[error("`{0}` needs a unit")]
    NoUnit(String),
    #[error("unknown unit `{unit}` of a duration")]
    UnknownUnit { number: String, unit: String },
    #[error("`{0}` is too long")]
    TooLong(String),
}

impl Help for InvalidSpan {
    fn help(&self) -> String {
        match self {
            Self::Malformed(_) => "write a number and a unit such as `500ms`, `20s`, `3m`, `1h` or `7d`".to_owned(),
            Self::NoUnit(number) => format!("write {}", with_units(number)),
            Self::UnknownUnit { number, unit } => {
                meant(number, unit, &SPANS_OF_OTHERS).unwrap_or_else(|| "expected ms, s, m, h or d".to_owned())
            }
            Self::TooLong(_) => format!("the longest duration is {}", Span::MAX),
        }
    }

    fn sentence(&self) -> String {
        match self {
            Self::NoUnit(number) => format!("{self}: {}", with_units(number)),
            _ => format!("{self}, {}", self.help()),
        }
    }
}

fn with_units(number: &str) -> String {
    format!("`{number}ms`, `{number}s`, `{number}m`, `{number}h` or `{number}d`")
}

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidSize {
    #[error("`{0}` is not a size")]
    Malformed(String),
    #[error("unknown unit `{unit}` of a size")]
    UnknownUnit { number: String, unit: String },
    #[error("`{0}` is too large for a size")]
    TooLarge(String),
}

impl Help for InvalidSize {
    fn help(&self) -> String {
        match self {
            Self::Malformed(_) | Self::TooLarge(_) => "write a number and a unit such as `64KiB` or `10MiB`".to_owned(),
            Self::UnknownUnit { number, unit } => {
                meant(number, unit, &SIZES_OF_OTHERS).unwrap_or_else(|| "expected B, KiB, MiB, GiB or TiB".to_owned())
            }
        }
    }
}

impl Span {
    /// A hundred years. A longer span is a mistake, and sums of spans and timestamps stay far from overflow.
    pub const MAX: Self = Self(Duration::from_secs(36_500 * 86_400));
}

impl FromStr for Span {
    type Err = InvalidSpan;

    fn from_str(text: &str) -> Result<Self, InvalidSpan> {
        let text = text.trim();
        let (digits, unit) = split(text).ok_or_else(|| InvalidSpan::Malformed(text.to_owned()))?;
        let too_long = || InvalidSpan::TooLong(text.to_owned());
        let number: u64 = digits.parse().map_err(|_| too_long())?;
        let scale = match unit {
            "" if number == 0 => 1,
            "" => return Err(InvalidSpan::NoUnit(text.to_owned())),
            _ => factor(&SPANS, unit).ok_or_else(|| {
                let (number, unit) = (digits.to_owned(), unit.to_owned());
                InvalidSpan::UnknownUnit { number, unit }
            })?,
        };
        let span = Self(Duration::from_millis(number.checked_mul(scale).ok_or_else(too_long)?));
        if span > Self::MAX { Err(too_long()) } else { Ok(span) }
    }
}

impl fmt::Display for Span {
    /// In the largest unit that needs no fraction; parts of a millisecond are not shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        print(f, millis, &SPANS, "s")
    }
}

impl FromStr for Size {
    type Err = InvalidSize;

    fn from_str(text: &str) -> Result<Self, InvalidSize> {
        let text = text.trim();
        let (digits, unit) = split(text).ok_or_else(|| InvalidSize::Malformed(text.to_owned()))?;
        let too_large = || InvalidSize::TooLarge(text.to_owned());
        let number: u64 = digits.parse().map_err(|_| too_large())?;
        let scale = match unit {
            "" => 1,
            _ => factor(&SIZES, unit).ok_or_else(|| {
                let (number, unit) = (digits.to_owned(), unit.to_owned());
                InvalidSize::UnknownUnit { number, unit }
            })?,
        };
        number.checked_mul(scale).map(Self).ok_or_else(too_large)
    }
}

impl fmt::Display for Size {
    /// In the largest unit that needs no fraction.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(f, self.0, &SIZES, "B")
    }
}

/// Units of spans in milliseconds, largest first.
pub const SPANS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// Units of sizes in bytes, largest first. There are no powers of ten, because names such as `MB` are ambiguous.
pub const SIZES: [(&str, u64); 5] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// The help for a unit as other programs write it. `None`: none of them does.
fn meant(number: &str, unit: &str, units: &[(&str, &[&str])]) -> Option<String> {
    let unit = unit.to_ascii_lowercase();
    let (ours, _) = units.iter().find(|(_, others)| others.contains(&&*unit))?;
    Some(format!("write `{number}{ours}`"))
}

/// Units of spans as other programs write them, in lower case.
const SPANS_OF_OTHERS: [(&str, &[&str]); 5] = [
    ("d", &["d", "day", "days"]),
    ("h", &["h", "hr", "hrs", "hour", "hours"]),
    ("m", &["m", "min", "mins", "minute", "minutes"]),
    ("s", &["s", "sec", "secs", "second", "seconds"]),
    ("ms", &["ms", "msec", "millis", "milliseconds"]),
];

/// Units of sizes as other programs write them, in lower case. Most of them mean powers of two.
const SIZES_OF_OTHERS: [(&str, &[&str]); 5] = [
    ("TiB", &["t", "tb", "ti", "tib"]),
    ("GiB", &["g", "gb", "gi", "gib"]),
    ("MiB", &["m", "mb", "mi", "mib"]),
    ("KiB", &["k", "kb", "ki", "kib"]),
    ("B", &["b", "bytes"]),
];

/// Splits `text` into the digits at its beginning and the unit behind them. `None`: it has no digits, or no valid unit.
fn split(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let unit = unit.trim_start();
    let unit_is_word = unit.chars().all(|c| c.is_ascii_alphabetic());
    (!digits.is_empty() && unit_is_word).then_some((digits, unit))
}

fn factor(units: &[(&str, u64)], name: &str) -> Option<u64> {
    units.iter().find(|(unit, _)| *unit == name).map(|(_, factor)| *factor)
}

fn print(f: &mut fmt::Formatter<'_>, amount: u64, units: &[(&str, u64)], unit_of_nothing: &str) -> fmt::Result {
    let whole = units.iter().find(|(_, factor)| amount != 0 && amount.is_multiple_of(*factor));
    match whole {
        Some((unit, factor)) => write!(f, "{}{unit}", amount / factor),
        None => write!(f, "{amount}{unit_of_nothing}"),
    }
}

// Names in messages.

/// The known name that is closest to a misspelt one. Of two that are as close, the one that begins more alike.
pub fn nearest<'k>(written: &str, known: &[&'k str]) -> Option<&'k str> {
    let folded = written.to_lowercase().replace('-', "_");
    let distance = |key: &str| strsim::osa_distance(&folded, &key.to_lowercase().replace('-', "_"));
    // With more mistakes than this, it is another word.
    let bound = (folded.chars().count() / 3).clamp(1, 4);
    let near = known.iter().map(|key| (distance(key), *key)).filter(|(distance, _)| *distance <= bound);
    let alike = |key: &str| folded.chars().zip(key.chars()).take_while(|(letter, other)| letter == other).count();
    near.min_by_key(|(distance, key)| (*distance, Reverse(alike(key)))).map(|(_, key)| key)
}

/// Joins names as in `a`, `b` and `c`.
pub fn listed(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::any;
    use proptest::proptest;

    use super::*;

    #[track_caller]
    fn span(text: &str, expected: Result<Duration, &str>) {
        let parsed = text.parse::<Span>().map(|span| span.0).map_err(|error| error.sentence());
        assert_eq!(parsed, expected.map_err(str::to_owned), "{text}");
    }

    #[track_caller]
    fn size(text: &str, expected: Result<u64, &str>) {
        let parsed = text.parse::<Size>().map(|size| size.0).map_err(|error| error.sentence());
        assert_eq!(parsed, expected.map_err(str::to_owned), "{text}");
    }

    #[test]
    fn a_number_is_read_in_groups_of_three() {
        let shown = [0, 999, 1000, 9812, 1_234_567].map(thousands);
        assert_eq!(shown, ["0", "999", "1,000", "9,812", "1,234,567"]);
    }

    #[test]
    fn one_is_singular() {
        let words = [0, 1, 2].map(|count| counted(count, "mistake"));
        assert_eq!(words, ["0 mistakes", "1 mistake", "2 mistakes"]);
    }

    #[test]
    fn durations_are_a_number_and_a_unit() {
        span("500ms", Ok(Duration::from_millis(500)));
        span("20s", Ok(Duration::from_secs(20)));
        span("3m", Ok(Duration::from_secs(180)));
        span(" 1 h ", Ok(Duration::from_secs(3600)));
        span("7d", Ok(Duration::from_secs(7 * 86_400)));
        span("0", Ok(Duration::ZERO));
        span("0s", Ok(Duration::ZERO));
    }

    #[test]
    fn a_wrong_duration_says_what_to_write() {
        const EXAMPLES: &str = "write a number and a unit such as `500ms`, `20s`, `3m`, `1h` or `7d`";
        span("20", Err("`20` needs a unit: `20ms`, `20s`, `20m`, `20h` or `20d`"));
        span("3 min", Err("unknown unit `min` of a duration, write `3m`"));
        span("20S", Err("unknown unit `S` of a duration, write `20s`"));
        span("2 weeks", Err("unknown unit `weeks` of a duration, expected ms, s, m, h or d"));
        for text in ["", "s", "-1s", "1.5h", "1h30m", "+1s", "1s\u{a0}s"] {
            span(text, Err(&format!("`{text}` is not a duration, {EXAMPLES}")));
        }
        span("36501d", Err("`36501d` is too long, the longest duration is 36500d"));
        span("99999999999999999999ms", Err("`99999999999999999999ms` is too long, the longest duration is 36500d"));
        span("18446744073709551615d", Err("`18446744073709551615d` is too long, the longest duration is 36500d"));
    }

    #[test]
    fn sizes_are_a_number_and_a_unit() {
        size("64KiB", Ok(64 * 1024));
        size("10 MiB", Ok(10 * 1024 * 1024));
        size("2GiB", Ok(2 << 30));
        size("1TiB", Ok(1 << 40));
        size("512B", Ok(512));
        size("0", Ok(0));
        size("4096", Ok(4096));
    }

    #[test]
    fn a_wrong_size_says_what_to_write() {
        size("64KB", Err("unknown unit `KB` of a size, write `64KiB`"));
        size("10m", Err("unknown unit `m` of a size, write `10MiB`"));
        size("10 pages", Err("unknown unit `pages` of a size, expected B, KiB, MiB, GiB or TiB"));
        size("1.5MiB", Err("`1.5MiB` is not a size, write a number and a unit such as `64KiB` or `10MiB`"));
        size("-1", Err("`-1` is not a size, write a number and a unit such as `64KiB` or `10MiB`"));
        size(
            "16777216TiB",
            Err("`16777216TiB` is too large for a size, write a number and a unit such as `64KiB` or `10MiB`"),
        );
    }

    #[test]
    fn they_are_printed_in_the_largest_unit_without_a_fraction() {
        assert_eq!(Span(Duration::from_millis(1500)).to_string(), "1500ms");
        assert_eq!(Span(Duration::from_secs(5400)).to_string(), "90m");
        assert_eq!(Span(Duration::ZERO).to_string(), "0s");
        assert_eq!(Size(65_536).to_string(), "64KiB");
        assert_eq!(Size(1025).to_string(), "1025B");
        assert_eq!(Size(0).to_string(), "0B");
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_the_same(millis in 0..=36_500 * 86_400_000_u64, bytes in any::<u64>()) {
            let span = Span(Duration::from_millis(millis));
            assert_eq!(span.to_string().parse(), Ok(span));
            assert_eq!(Size(bytes).to_string().parse(), Ok(Size(bytes)));
        }

        #[test]
        fn no_text_makes_them_panic(text in "\\PC*", near in "[0-9]{0,25} ?[a-zA-Z]{0,3}") {
            for text in [text, near] {
                let _ = text.parse::<Span>();
                let _ = text.parse::<Size>();
            }
        }
    }

    #[track_caller]
    fn check_nearest(written: &str, expected: Option<&str>) {
        let known = ["listen", "upstream", "upstreams", "limits", "client_ip", "max_keys", "v4"];
        assert_eq!(nearest(written, &known), expected);
    }

    #[test]
    fn misspelt_names_are_found() {
        check_nearest("lisen", Some("listen"));
        check_nearest("lsiten", Some("listen"));
        check_nearest("upstrem", Some("upstream"));
        check_nearest("Limits", Some("limits"));
        check_nearest("client-ip", Some("client_ip"));
        check_nearest("clientip", Some("client_ip"));
        check_nearest("max_key", Some("max_keys"));
        assert_eq!(nearest("dely", &["deny", "delay"]), Some("delay"));
        check_nearest("ipv4", None);
        check_nearest("whitelist", None);
    }

    #[test]
    fn names_are_joined_by_commas_and_a_last_and() {
        assert_eq!(listed(&[]), "");
        assert_eq!(listed(&["a"]), "`a`");
        assert_eq!(listed(&["a", "b"]), "`a` and `b`");
        assert_eq!(listed(&["a", "b", "c"]), "`a`, `b` and `c`");
    }
}
