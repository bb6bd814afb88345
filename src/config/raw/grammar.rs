//! What a single value may be, as regular expressions for the schema. They are made from the tables that also read the value.

use std::time::Duration;

use serde_json::{Map, Value, json};

pub use super::forms::{
    FIELD, HOST_PATTERN, HTTP_URL, KEY_PREFIX, METHOD, NAME, PATH, REDIS, SERVER, TOKEN_PLACE, UPSTREAM,
};
use crate::rules::key::Selector;
use crate::rules::limit::rate::unit_names;
use crate::rules::route::METHOD_MARKS;
use crate::words::units::{SIZES, SPANS, Span};

/// A variable of the environment; `$${` is no variable.
const VARIABLE: &str = "(?:^|[^$])\\$\\{";

/// Any number of what Unicode calls white space.
const BLANK: &str = "[\\t-\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]*";

/// Letters of a host's name.
const HOST: &str = "[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?(?:\\.[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?)*\\.?";

/// The name of a header, without the characters of globs.
const FIELD_NAME: &str = "[!#$%&'+.^_`|~0-9A-Za-z-]+";

const NO_BLANK: &str = "[^*?\\t-\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";

const NO_BLANK_IN_SEGMENT: &str =
    "[^/\\\\?#*{}\\t-\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]*";

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

/// A selector, without those that would be globs.
pub fn selector() -> String {
    let forms = Selector::FORMS.iter().map(|form| match *form {
        "header." => format!("header\\.{FIELD_NAME}"),
        kind if kind.ends_with('.') => format!("{}\\.[^*?]*{NO_BLANK}", kind.trim_end_matches('.')),
        word => word.replace('.', "\\."),
    });
    trimmed(&forms.collect::<Vec<_>>())
}

/// Methods and a path, or a path alone.
pub fn short_match() -> String {
    let methods = format!("{}(?:,{0})*", method_name());
    format!("{BLANK}(?:{methods}{SPACE}+)?{}{BLANK}", path_of(NO_BLANK_IN_SEGMENT))
}

/// How a `location` of nginx begins, which reads like a method and a path.
pub fn location() -> String {
    format!("^{BLANK}location{SPACE}")
}

pub fn method() -> String {
    trimmed(&[method_name()])
}

fn method_name() -> String {
    format!("[A-Za-z0-9{}]+", METHOD_MARKS.replace('-', "\\-"))
}

/// The path of a route. That no name stands in it twice is beyond such an expression.
pub fn path() -> String {
    path_of("[^/\\\\?#*{}]*")
}

fn path_of(segment: &str) -> String {
    // A server may cut what follows a `;` off a segment.
    let segment = format!("(?:{segment}|\\{{[A-Za-z0-9_-]+\\}})");
    format!("(?:/{segment}(?:[/\\\\]{segment})*(?:/\\*)?|/\\*)")
}

/// A host, or every host below a domain.
pub fn host_pattern() -> String {
    let first = "[^./#@ ,*?:\\]\\t-\\r\\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
    let bracketed = "\\[[^/#@ ,*?\\]]*\\]";
    format!("{BLANK}(?:\\*\\.)?(?:{bracketed}|{first})[^/#@ ,*?:\\]]*{BLANK}")
}

/// A name that people choose: it is part of headers and metrics.
pub fn name() -> String {
    let letter = "!#-)+->@-\\[\\]-~";
    format!("[{letter}](?:[ {letter}]{{0,126}}[{letter}])?")
}

/// How keys in Redis begin.
pub fn key_prefix() -> String {
    NO_BLANK.replace("[^*?", "[^*?\\u0000-\\u001f\\u007f-\\u009f") + "{1,64}"
}

/// Where requests carry their token.
pub fn token_place() -> String {
    trimmed(&["bearer".to_owned(), format!("cookie\\.[^*?]*{NO_BLANK}"), format!("header\\.{FIELD_NAME}")])
}

pub fn field_name() -> String {
    FIELD_NAME.to_owned()
}

/// An address and a port.
pub fn socket_address() -> String {
    let port = whole_number(Bounds::new(0, u16::MAX.into()));
    let scope = whole_number(Bounds::new(0, u32::MAX.into()));
    format!("(?:{}|\\[{}(?:%{scope})?\\]):{port}", ipv4(), ipv6())
}

/// An address, or a network.
pub fn network() -> String {
    let prefix = |most| whole_number(Bounds::new(0, most));
    format!("{}(?:/{})?|{}(?:/{})?", ipv4(), prefix(32), ipv6(), prefix(128))
}

fn ipv4() -> String {
    let byte = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
    format!("{byte}(?:\\.{byte}){{3}}")
}

/// As RFC 3986 has it: `::` stands for one group or more.
fn ipv6() -> String {
    let group = "[0-9A-Fa-f]{1,4}";
    let last = format!("(?:{group}:{group}|{})", ipv4());
    let mut forms = vec![format!("(?:{group}:){{6}}{last}")];
    for after in (0..=5).rev() {
        let before = 5 - after;
        let head = if before == 0 { String::new() } else { format!("(?:(?:{group}:){{0,{}}}{group})?", before - 1) };
        forms.push(format!("{head}::(?:{group}:){{{after}}}{last}"));
    }
    forms.push(format!("(?:(?:{group}:){{0,5}}{group})?::{group}"));
    forms.push(format!("(?:(?:{group}:){{0,6}}{group})?::"));
    format!("(?:{})", forms.join("|"))
}

/// A Unix socket: the word before it, and an absolute path.
pub fn unix_socket(word: &str, longest: usize) -> String {
    format!("{word}/[^\\u0000-\\u001f\\u007f-\\u009f]{{0,{}}}", longest - 1)
}

/// The URL of a server: nothing stands behind its port.
pub fn server_url() -> String {
    let port = whole_number(Bounds::new(1, u16::MAX.into()));
    let http = of_any_case("http");
    let socket = unix_socket(&of_any_case("unix:"), 107);
    format!("{http}://{socket}|{http}[Ss]?://(?:{HOST}|\\[{}\\])(?::{port})?/?", ipv6())
}

/// The URL of a server, or the name of an upstream, which is there or not.
pub fn upstream() -> String {
    format!("{}|[^:/]*", server_url())
}

/// The URL of a Redis. What it may hold depends on `mode`.
pub fn redis_url() -> String {
    "(?:redis|rediss|valkey|valkeys)://[^#?]+|unix://.*".to_owned()
}

/// A URL for the gateway to call.
pub fn http_url() -> String {
    let http = of_any_case("http");
    format!("{BLANK}{http}[Ss]?://(?:{HOST}|\\[{}\\])(?::[0-9]+)?(?:[/?][!-\"$-~]*)?{BLANK}", ipv6())
}

/// Digits for the numbers within bounds, zeros before them included.
pub fn whole_number(bounds: Bounds) -> String {
    let ranges = of_equal_digits(bounds);
    let ranges: Vec<String> = ranges.iter().map(|(first, last)| digits_between(*first, *last)).collect();
    format!("0*(?:{})", ranges.join("|"))
}

// What only several keys of a section together tell.

/// The section has one of these keys, or several.
pub fn one_of(keys: &[&str]) -> Value {
    let choices: Vec<Value> = keys.iter().map(|key| json!({ "required": [key] })).collect();
    json!({ "anyOf": choices })
}

/// The keys exclude each other.
pub fn not_both(one: &str, other: &str) -> Value {
    json!({ "not": { "required": [one, other] } })
}

/// The key has no meaning without another key of this value.
pub fn only_with(key: &str, other: &str, value: &Value) -> Value {
    let with = json!({ "required": [other], "properties": { other: value }, "additionalProperties": true });
    json!({ "anyOf": [{ "not": { "required": [key] } }, with] })
}

/// At most one of these keys.
pub fn at_most_one(keys: &[&str]) -> Value {
    let pairs =
        keys.iter().enumerate().flat_map(|(at, one)| keys[at + 1..].iter().map(move |other| not_both(one, other)));
    json!({ "allOf": pairs.collect::<Vec<_>>() })
}

/// The key needs another key.
pub fn needs(key: &str, other: &str) -> Value {
    json!({ "anyOf": [{ "not": { "required": [key] } }, { "required": [other] }] })
}

/// Lists that may not be empty.
pub fn filled(keys: &[&str]) -> Value {
    let filled = json!({ "not": { "type": "array", "maxItems": 0 } });
    let properties: Map<String, Value> = keys.iter().map(|key| ((*key).to_owned(), filled.clone())).collect();
    json!({ "properties": properties, "additionalProperties": true })
}

/// A limit of requests in flight neither bans nor challenges.
pub fn no_ban_of_slots() -> Value {
    let neither = json!({ "not": { "anyOf": [{ "required": ["ban"] }, { "required": ["challenge"] }] } });
    let then = json!({ "properties": { "then": neither }, "additionalProperties": true });
    json!({ "anyOf": [{ "not": { "required": ["concurrent"] } }, then] })
}

/// With `redirect`, a `status` is one of a redirect.
pub fn only_redirects() -> Value {
    let status = json!({ "anyOf": [
        { "enum": [301, 302, 303, 307, 308] },
        text("status of a redirect", "30[12378]"),
    ] });
    let fits = json!({ "properties": { "status": status }, "additionalProperties": true });
    json!({ "anyOf": [{ "not": { "required": ["redirect"] } }, fits] })
}

/// The section has a key at least.
pub fn not_empty() -> Value {
    json!({ "minProperties": 1 })
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
