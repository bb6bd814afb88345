//! What a single value may be, as regular expressions for the schema. They are made from the tables that also read the value.

use std::time::Duration;

use serde_json::{Value, json};

use crate::rules::limit::rate::unit_names;
use crate::words::units::{SIZES, SPANS, Span};

/// A variable of the environment; `$${` is no variable.
const VARIABLE: &str = "(?:^|[^$])\\$\\{";

/// Any number of what Unicode calls white space.
const BLANK: &str = "[\\t-\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]*";

/// One of these.
const SPACE: &str = "[\\t-\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";

/// The least and the most that a key takes: as a number, in milliseconds or in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub least: u64,
    pub most: u64,
}

impl Bounds {
    pub const fn new(least: u64, most: u64) -> Self {
        Self { least, most }
    }

    pub const fn contain(self, number: u64) -> bool {
        self.least <= number && number <= self.most
    }

    /// The most, where it is in milliseconds.
    pub const fn longest(self) -> Span {
        Span(Duration::from_millis(self.most))
    }
}

/// The schema of a value that is written as a text. `title` is what it is, in a word.
pub fn text(title: &str, pattern: &str) -> Value {
    json!({ "title": title, "type": "string", "pattern": or_variable(pattern) })
}

/// The schema of one of some words.
pub fn words(words: &[&str]) -> Value {
    json!({ "anyOf": [{ "enum": words }, { "type": "string", "pattern": VARIABLE }] })
}

/// The schema of a whole number.
pub fn number(bounds: Bounds) -> Value {
    json!({
        "title": "number",
        "type": ["integer", "string"],
        "minimum": bounds.least,
        "maximum": bounds.most,
        "pattern": or_variable(&whole_number(bounds)),
    })
}

/// The schema of a duration.
pub fn span(bounds: Bounds) -> Value {
    let mut amounts = amounts(&SPANS, bounds);
    let mut kinds = vec!["string"];
    if bounds.least == 0 {
        // The only number that needs no unit.
        amounts.push("0+".to_owned());
        kinds.push("integer");
    }
    json!({
        "title": "duration",
        "type": kinds,
        "maximum": 0,
        "minimum": 0,
        "pattern": or_variable(&trimmed(&amounts)),
        "examples": ["500ms", "20s", "3m", "1h", "7d"],
    })
}

/// The schema of a size.
pub fn size(bounds: Bounds) -> Value {
    let mut amounts = amounts(&SIZES, bounds);
    amounts.push(whole_number(bounds));
    json!({
        "title": "size",
        "type": ["string", "integer"],
        "minimum": bounds.least,
        "maximum": bounds.most,
        "pattern": or_variable(&trimmed(&amounts)),
        "examples": ["64KiB", "10MiB", 0],
    })
}

/// Rates. That no two have the same window is beyond such an expression.
pub fn rates(longest_window: u64) -> String {
    let count = whole_number(Bounds::new(1, u32::MAX.into()));
    let (mut windows, mut counted) = (Vec::new(), Vec::new());
    for (name, seconds) in unit_names() {
        let multiple = whole_number(Bounds::new(1, longest_window / seconds));
        let name = of_any_case(&name);
        windows.push(format!("(?:{multiple}{BLANK})?{name}"));
        counted.push(format!("{multiple}{BLANK}{name}"));
    }
    let windows = format!("(?:{})", windows.join("|"));
    let per = of_any_case("per");
    // A word ends where a space or a digit stands.
    let per = format!("(?:/{BLANK}{windows}|{per}{SPACE}{BLANK}{windows}|{per}(?:{}))", counted.join("|"));
    let rate = format!("{BLANK}{count}{BLANK}{per}{BLANK}");
    format!("{rate}(?:[;,|]{rate})*")
}

/// Digits for the numbers within bounds, zeros before them included.
pub fn whole_number(bounds: Bounds) -> String {
    let ranges = of_equal_digits(bounds);
    let ranges: Vec<String> = ranges.iter().map(|(first, last)| digits_between(*first, *last)).collect();
    format!("0*(?:{})", ranges.join("|"))
}

/// Also what is made from the environment.
pub fn or_variable(pattern: &str) -> String {
    format!("^(?:{pattern})$|{VARIABLE}")
}

fn trimmed(choices: &[String]) -> String {
    format!("{BLANK}(?:{}){BLANK}", choices.join("|"))
}

/// A number and a unit, within bounds.
fn amounts(units: &[(&str, u64)], bounds: Bounds) -> Vec<String> {
    let of_unit = |(unit, factor): &(&str, u64)| {
        let bounds = Bounds::new(bounds.least.div_ceil(*factor), bounds.most / factor);
        (bounds.least <= bounds.most).then(|| format!("{}{BLANK}{unit}", whole_number(bounds)))
    };
    units.iter().filter_map(of_unit).collect()
}

/// Ranges that cover the bounds, in each of which digits vary independently: of 7 to 123 these are 7-9, 10-99, 100-119 and
/// 120-123.
fn of_equal_digits(bounds: Bounds) -> Vec<(u64, u64)> {
    let (least, most) = (u128::from(bounds.least), u128::from(bounds.most));
    let mut ends = vec![most];
    for zeros in 1..=20 {
        let power = 10_u128.pow(zeros);
        // The last number that differs from the least in these digits only, and the last before the same for the most.
        ends.extend([least / power * power + power - 1, ((most + 1) / power * power).saturating_sub(1)]);
    }
    ends.retain(|end| (least..=most).contains(end));
    ends.sort_unstable();
    ends.dedup();
    let mut ranges = Vec::new();
    let mut first = bounds.least;
    for end in ends {
        let end = u64::try_from(end).unwrap_or(u64::MAX);
        ranges.push((first, end));
        first = end.saturating_add(1);
    }
    ranges
}

fn digits_between(first: u64, last: u64) -> String {
    let (first, last) = (first.to_string(), last.to_string());
    let digits = first.chars().zip(last.chars());
    digits.map(|(low, high)| if low == high { low.to_string() } else { format!("[{low}-{high}]") }).collect()
}

fn of_any_case(word: &str) -> String {
    word.chars().flat_map(|letter| ['[', letter.to_ascii_uppercase(), letter, ']']).collect()
}

// The least and the most that keys take. The schema shows them, and the compilation holds values to them.

/// What is counted.
pub const COUNT: Bounds = Bounds::new(1, u32::MAX as u64);

/// Any duration but none, in milliseconds.
pub const SOME_TIME: Bounds = Bounds::new(1, LONGEST);

/// Bits of an IPv4 address.
pub const IPV4_PREFIX: Bounds = Bounds::new(1, 32);

/// Bits of an IPv6 address.
pub const IPV6_PREFIX: Bounds = Bounds::new(1, 128);

/// Clients that are remembered for each name.
pub const REMEMBERED: Bounds = Bounds::new(1, 1_000);

/// How long clients and sessions are known. Browsers keep no cookie longer than 400 days.
pub const KEPT: Bounds = Bounds::new(1, 400 * DAY);

/// How long a request is held: browsers, proxies and people give up long before an hour.
pub const HELD_FOR: Bounds = Bounds::new(1, 60 * MINUTE);

/// A ban that is longer than a year should be the decision of an operator.
pub const BAN: Bounds = Bounds::new(1, 365 * DAY);

/// How often a Local API is asked.
pub const ASKED_EVERY: Bounds = Bounds::new(1_000, 60 * MINUTE);

/// By how much clocks may differ.
pub const LEEWAY: Bounds = Bounds::new(0, 60 * MINUTE);

/// Longer than any load balancer takes to notice.
pub const LAME_DUCK: Bounds = Bounds::new(0, 60 * MINUTE);

/// Bytes per second. Many ordinary connections are slower than the maximum.
pub const BODY_RATE: Bounds = Bounds::new(0, 1_000_000);

/// The minimum is needed for the request of a browser. More than the maximum belongs in a body.
pub const HEADER_BYTES: Bounds = Bounds::new(1 << 10, 1 << 20);

/// The maximum is the most that one request can have at all.
pub const HEADERS: Bounds = Bounds::new(1, 10_000);

/// Each held request keeps its connection and a few KiB. Zero is allowed: requests beyond the bound are denied.
pub const HELD: Bounds = Bounds::new(0, 1_000_000);

/// Each request under way may take as much memory.
pub const INSPECTED_BYTES: Bounds = Bounds::new(1, 64 << 20);

/// More replicas than any server has.
pub const REPLICAS: Bounds = Bounds::new(0, 100);

/// As many keys or sessions as fit into the memory of a large machine.
pub const CAPACITY: Bounds = Bounds::new(1, 1_000_000_000);

/// Any number.
pub const ANY: Bounds = Bounds::new(0, u64::MAX);

/// Any duration, none included.
pub const ANY_TIME: Bounds = Bounds::new(0, LONGEST);

/// [`Span::MAX`](crate::words::units::Span::MAX).
const LONGEST: u64 = 36_500 * DAY;

const DAY: u64 = SPANS[0].1;

const MINUTE: u64 = SPANS[2].1;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    proptest! {
        #[test]
        fn a_number_is_within_its_bounds_as_its_digits_are(
            (least, most, number) in prop_oneof![
                (0..2000_u64, 0..2000_u64, 0..2500_u64),
                (any::<u64>(), any::<u64>(), any::<u64>()),
            ],
            zeros in 0..3_usize,
        ) {
            let bounds = Bounds::new(least.min(most), least.max(most));
            let regex = Regex::new(&format!("^{}$", whole_number(bounds))).unwrap();
            for number in [number, bounds.least, bounds.most, bounds.least.saturating_sub(1), bounds.most.saturating_add(1)] {
                let text = format!("{}{number}", "0".repeat(zeros));
                assert_eq!(regex.is_match(&text), (bounds.least..=bounds.most).contains(&number), "{text} in {bounds:?}");
            }
        }
    }
}
