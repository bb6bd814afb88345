//! The rate grammar: `10/minute`, `10 per 3 minutes`, `1/second; 20/minute`.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::words::word::Help;

/// A count in a window of time. The window is whole seconds, at least one, at most [`Rate::MAX_WINDOW`].
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct Rate {
    pub count: NonZeroU32,
    pub per: Duration,
}

/// One or several rates that pass together, in the order they were written; no two have the same window.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Rates(Box<[Rate]>);

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidRate {
    #[error("a rate is missing")]
    Missing,
    #[error("a rate needs a count above zero")]
    Zero,
    #[error("a count of {0} is too large")]
    CountTooLarge(String),
    #[error("a window of no time counts nothing")]
    NoWindow,
    #[error("a window of {0} is too long")]
    WindowTooLong(String),
    #[error("unknown unit `{0}`")]
    UnknownUnit(String),
    #[error("two rates for the same window, `{0}` and `{1}`")]
    SameWindow(Rate, Rate),
    #[error("`{0}` is not a rate")]
    Malformed(String),
    #[error("spans of the calendar, as in `{0}`, are not implemented in this version yet")]
    Calendar(String),
}

impl Help for InvalidRate {
    fn help(&self) -> String {
        let example = "write a count and a window such as `10/minute` or `10 per 3 minutes`";
        match self {
            Self::Malformed(text) => {
                let beside = if text.contains("burst") {
                    "; a `burst` is a key of its own, beside `algorithm: token-bucket`"
                } else {
                    ""
                };
                of_nginx(text).map_or_else(|| example.to_owned(), |rate| format!("write `{rate}`{beside}"))
            }
            Self::Calendar(_) => "a window is a span such as `1000/day`, wherever it begins".to_owned(),
            Self::Missing => example.to_owned(),
            Self::Zero => {
                "write a count of 1 or more, such as `1/minute`; to refuse a client always, put it on a list \
                           under `access.deny`"
                    .to_owned()
            }
            Self::CountTooLarge(_) => format!("write at most `{}`", u32::MAX),
            Self::NoWindow => "write at least one second".to_owned(),
            Self::WindowTooLong(_) => "write at most `100 years`".to_owned(),
            Self::UnknownUnit(_) => "expected second, minute, hour, day, week, month or year".to_owned(),
            Self::SameWindow(one, other) => format!("write the smaller one, `{}`", smaller(one, other)),
        }
    }
}

/// The rate that nginx writes as `10r/s`, also among its other parameters: `zone=one:10m rate=10r/s burst=20;`.
fn of_nginx(text: &str) -> Option<String> {
    let rates = text.split_whitespace().map(|word| {
        let word = word.trim_end_matches(';');
        word.strip_prefix("rate=").unwrap_or(word).replace("r/", "/")
    });
    rates.into_iter().find(|rate| rate.parse::<Rate>().is_ok())
}

fn smaller<'r>(one: &'r Rate, other: &'r Rate) -> &'r Rate {
    if other.count < one.count { other } else { one }
}

impl Rate {
    /// A hundred years, so that sums of windows and moments stay far from overflow.
    pub const MAX_WINDOW: Duration = Duration::from_secs(100 * 365 * 86_400);

    /// The window in microseconds.
    pub(crate) fn window(&self) -> u64 {
        // A period is shorter than a hundred years, so neither the product nor the sum overflows.
        self.per.as_secs().saturating_mul(1_000_000) + u64::from(self.per.subsec_micros())
    }
}

impl Rates {
    /// At least one rate; all windows differ and lie within bounds.
    pub fn new(rates: impl Into<Box<[Rate]>>) -> Result<Self, InvalidRate> {
        let rates = rates.into();
        if rates.is_empty() {
            return Err(InvalidRate::Missing);
        }
        for (position, rate) in rates.iter().enumerate() {
            if rate.per < Duration::from_secs(1) || rate.per.subsec_nanos() != 0 {
                return Err(InvalidRate::NoWindow);
            }
            if rate.per > Rate::MAX_WINDOW {
                return Err(InvalidRate::WindowTooLong(format!("{} seconds", rate.per.as_secs())));
            }
            if let Some(same) = rates.iter().take(position).find(|earlier| earlier.per == rate.per) {
                return Err(InvalidRate::SameWindow(*same, *rate));
            }
        }
        Ok(Self(rates))
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Rate> {
        self.0.iter()
    }

    pub fn as_slice(&self) -> &[Rate] {
        &self.0
    }

    /// The largest count of all rates. A log keeps this many entries.
    pub fn largest_count(&self) -> NonZeroU32 {
        self.iter().map(|rate| rate.count).max().unwrap_or(NonZeroU32::MIN)
    }

    /// The longest window of all rates.
    pub fn longest_window(&self) -> Duration {
        self.iter().map(|rate| rate.per).max().unwrap_or_default()
    }
}

impl<'a> IntoIterator for &'a Rates {
    type Item = &'a Rate;
    type IntoIter = std::slice::Iter<'a, Rate>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl FromStr for Rate {
    type Err = InvalidRate;

    /// A count, `/` or `per`, and a window: an optional number and a unit. Case and spaces do not matter.
    fn from_str(text: &str) -> Result<Self, InvalidRate> {
        let text = text.trim();
        if text.is_empty() {
            return Err(InvalidRate::Missing);
        }
        let malformed = || InvalidRate::Malformed(text.to_owned());
        let (count, rest) = number(text);
        if count.is_empty() {
            return Err(malformed());
        }
        let window = after_per(rest).ok_or_else(malformed)?;
        if window.get(..8).is_some_and(|word| word.eq_ignore_ascii_case("calendar")) {
            return Err(InvalidRate::Calendar(text.to_owned()));
        }
        let (multiple, unit) = number(window);
        if unit.is_empty() || !unit.chars().all(char::is_alphabetic) {
            return Err(malformed());
        }
        let count: u32 = count.parse().map_err(|_| InvalidRate::CountTooLarge(count.to_owned()))?;
        let count = NonZeroU32::new(count).ok_or(InvalidRate::Zero)?;
        let unit = unit_seconds(unit).ok_or_else(|| InvalidRate::UnknownUnit(unit.to_owned()))?;
        let seconds = if multiple.is_empty() { Some(unit) } else { multiplied(multiple, unit) };
        match seconds {
            Some(0) => Err(InvalidRate::NoWindow),
            Some(seconds) if seconds <= Self::MAX_WINDOW.as_secs() => {
                Ok(Self { count, per: Duration::from_secs(seconds) })
            }
            _ => Err(InvalidRate::WindowTooLong(window.to_owned())),
        }
    }
}

impl FromStr for Rates {
    type Err = InvalidRate;

    /// Rates with `;`, `,` or `|` between them.
    fn from_str(text: &str) -> Result<Self, InvalidRate> {
        let rates: Vec<Rate> = text.split([';', ',', '|']).map(str::parse).collect::<Result<_, _>>()?;
        Self::new(rates)
    }
}

impl fmt::Display for Rate {
    /// In the largest unit that divides the window: `10/minute`, `10 per 3 minutes`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.per.as_secs();
        let whole = UNITS.iter().find(|(_, unit)| seconds.is_multiple_of(*unit));
        let (name, unit) = whole.unwrap_or(&("second", 1));
        match seconds / unit {
            1 => write!(f, "{}/{name}", self.count),
            multiple => write!(f, "{} per {multiple} {name}s", self.count),
        }
    }
}

impl fmt::Display for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, rate) in self.iter().enumerate() {
            let separator = if position == 0 { "" } else { "; " };
            write!(f, "{separator}{rate}")?;
        }
        Ok(())
    }
}

/// Names of units and their length in seconds, longest first.
const UNITS: [(&str, u64); 7] = [
    ("year", 365 * 86_400),
    ("month", 30 * 86_400),
    ("week", 7 * 86_400),
    ("day", 86_400),
    ("hour", 3600),
    ("minute", 60),
    ("second", 1),
];

/// The digits that `text` begins with, and the rest after them and spaces.
fn number(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    (digits, rest.trim_start())
}

/// The text after `/` or the word `per`.
fn after_per(text: &str) -> Option<&str> {
    if let Some(rest) = text.strip_prefix('/') {
        return Some(rest.trim_start());
    }
    let (word, rest) = text.split_at_checked(3)?;
    // A word ends where a space or a digit stands: `10 period` is not a rate.
    let ends = rest.starts_with(|c: char| c.is_whitespace() || c.is_ascii_digit());
    (word.eq_ignore_ascii_case("per") && ends).then(|| rest.trim_start())
}

/// The seconds in a unit: a whole word, its plural, or the first letter of the shorter ones.
fn unit_seconds(name: &str) -> Option<u64> {
    let name = name.to_ascii_lowercase();
    unit_names().find(|(unit, _)| *unit == name).map(|(_, seconds)| seconds)
}

/// Every name of a unit in lower case, and its seconds.
pub fn unit_names() -> impl Iterator<Item = (String, u64)> {
    UNITS.iter().flat_map(|(name, seconds)| {
        let letter = SHORT_UNITS.contains(name).then(|| name[..1].to_owned());
        [(*name).to_owned(), format!("{name}s")].into_iter().chain(letter).map(|name| (name, *seconds))
    })
}

/// The units that may be written as one letter.
const SHORT_UNITS: [&str; 4] = ["second", "minute", "hour", "day"];

fn multiplied(digits: &str, unit: u64) -> Option<u64> {
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests;
