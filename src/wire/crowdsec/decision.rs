//! A decision about an address or a range, as the API sends it.

use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;
use serde::Deserialize;

use crate::words::network_width::shortest_prefix;

/// The origin of decisions that gateways report. They are not followed: the gateways know these bans already.
pub const ORIGIN: &str = "portcullis";

const MOST_QUOTED: usize = 40;

/// A decision that a gateway can follow.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Decision {
    pub subject: Subject,
    /// How long it still lasts.
    pub left: Duration,
}

/// Identifies a decision. Ids do not: if there are several decisions on one subject the API sends the longest, and when
/// the last one is deleted it may name another.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Subject {
    pub scope: Scope,
    pub decision_type: DecisionType,
    pub network: IpNet,
}

#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Scope {
    Ip,
    Range,
}

#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum DecisionType {
    Ban,
    Captcha,
}

/// A decision in the JSON of the API.
#[derive(Debug, Deserialize)]
pub(super) struct SentDecision {
    #[serde(default)]
    origin: String,
    #[serde(rename = "type")]
    decision_type: String,
    scope: String,
    value: String,
    duration: String,
    #[serde(default)]
    simulated: Option<bool>,
}

/// Why a decision cannot be followed, with the quoted value.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, thiserror::Error)]
pub enum Unfollowed {
    #[error("of scope {0}")]
    Scope(String),
    #[error("of type {0}")]
    Type(String),
    #[error("about no address, such as {0}")]
    Value(String),
    #[error("about a network larger than a /{1}, such as {0}")]
    Width(String, u8),
    #[error("that last no duration, such as {0}")]
    Duration(String),
}

impl SentDecision {
    /// Whether it is in force, and not our own. Has no meaning for a deleted decision, which may stand for an earlier
    /// one on the same subject.
    pub(super) fn is_followed(&self) -> bool {
        self.origin != ORIGIN && self.simulated != Some(true)
    }

    pub(super) fn read(&self) -> Result<Decision, Unfollowed> {
        let scope = match self.scope.to_ascii_lowercase().as_str() {
            "ip" => Scope::Ip,
            "range" => Scope::Range,
            _ => return Err(Unfollowed::Scope(quoted(&self.scope))),
        };
        let decision_type = match self.decision_type.to_ascii_lowercase().as_str() {
            "ban" => DecisionType::Ban,
            "captcha" => DecisionType::Captcha,
            _ => return Err(Unfollowed::Type(quoted(&self.decision_type))),
        };
        let network = network(&self.value).ok_or_else(|| Unfollowed::Value(quoted(&self.value)))?;
        // One mistake of an engine would lock everyone out.
        if let Some(shortest) = shortest_prefix(network) {
            return Err(Unfollowed::Width(quoted(&self.value), shortest));
        }
        let left = parse_duration(&self.duration).ok_or_else(|| Unfollowed::Duration(quoted(&self.duration)))?;
        Ok(Decision { subject: Subject { scope, decision_type, network }, left })
    }
}

/// An address is a network of its full length.
fn network(value: &str) -> Option<IpNet> {
    let network = value.parse::<IpNet>().or_else(|_| value.parse::<IpAddr>().map(IpNet::from));
    network.ok().map(|network| network.trunc())
}

/// The beginning of a word from the API, escaped for a log line.
fn quoted(word: &str) -> String {
    let start: String = word.chars().take(MOST_QUOTED).collect();
    format!("{start:?}")
}

// Durations as Go prints them: `3h59m59.5s`, `-1h2m0s`.

const NANOS: u128 = 1_000_000_000;

/// An hour has fewer nanoseconds than this many digits count.
const MOST_DIGITS: usize = 15;

/// Parses a duration; `None`: it is none. A negative one is zero, one that is too long is the longest.
///
/// The grammar is the one of `time.ParseDuration` in Go's standard library.
pub(super) fn parse_duration(text: &str) -> Option<Duration> {
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

/// A number with a fraction, in units of `unit` nanoseconds.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Scope, *};

    #[track_caller]
    fn check(text: &str, millis: u64) {
        assert_eq!(parse_duration(text), Some(Duration::from_millis(millis)), "{text}");
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
        assert_eq!(parse_duration("99999999999999999999h"), longest);
        assert_eq!(parse_duration(&format!("{}h", "9".repeat(1000))), longest);
        assert_eq!(parse_duration(&format!("1.{}s", "9".repeat(1000))).map(|span| span.as_secs()), Some(1));
    }

    #[test]
    fn what_is_no_duration_is_none() {
        for text in ["", "-", "s", "1", "1d", "1.2.3s", ".s", "1h-2m", "1 s", "\u{e9}", "1\u{e9}"] {
            assert_eq!(parse_duration(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_sent_is_read_or_refused(text in ".{0,40}", millis in 0..10_000_000_000_u64) {
            parse_duration(&text);
            let (hours, rest) = (millis / 3_600_000, millis % 3_600_000);
            let printed = format!("{hours}h{}m{}.{:03}s", rest / 60_000, rest % 60_000 / 1000, rest % 1000);
            prop_assert_eq!(parse_duration(&printed), Some(Duration::from_millis(millis)));
        }
    }

    fn sent(origin: &str, decision_type: &str, scope: &str, value: &str) -> SentDecision {
        let [origin, decision_type, scope, value] = [origin, decision_type, scope, value].map(str::to_owned);
        SentDecision { origin, decision_type, scope, value, duration: "1h".to_owned(), simulated: None }
    }

    #[test]
    fn bans_and_captchas_of_addresses_and_ranges_are_read() {
        for (scope, value, expected) in [
            ("Ip", "198.51.100.7", (Scope::Ip, "198.51.100.7/32")),
            ("ip", "2001:db8::1", (Scope::Ip, "2001:db8::1/128")),
            ("Range", "198.51.100.7/24", (Scope::Range, "198.51.100.0/24")),
        ] {
            for (word, decision_type) in [("ban", DecisionType::Ban), ("captcha", DecisionType::Captcha)] {
                let subject = Subject { scope: expected.0, decision_type, network: expected.1.parse().unwrap() };
                let decision = Decision { subject, left: Duration::from_secs(3600) };
                assert_eq!(sent("cscli", word, scope, value).read(), Ok(decision));
            }
        }
    }

    #[test]
    fn our_own_decisions_and_simulated_ones_are_not_followed() {
        let of = |origin| sent(origin, "ban", "Ip", "198.51.100.7");
        let is_followed = |decision: SentDecision| decision.is_followed();
        assert!(is_followed(of("cscli")) && is_followed(of("")) && !is_followed(of(ORIGIN)));
        assert!(!is_followed(SentDecision { simulated: Some(true), ..of("cscli") }));
    }

    #[test]
    fn what_cannot_be_followed_is_named() {
        for (decision, words) in [
            (sent("", "throttle", "Ip", "198.51.100.7"), "of type \"throttle\""),
            (sent("", "ban", "Country", "FR"), "of scope \"Country\""),
            (sent("", "ban", "Ip", "here\n"), "about no address, such as \"here\\n\""),
            (sent("", "ban", "Range", "0.0.0.0/0"), "about a network larger than a /8, such as \"0.0.0.0/0\""),
            (sent("", "captcha", "Range", "2000::/3"), "about a network larger than a /16, such as \"2000::/3\""),
        ] {
            assert_eq!(decision.read().unwrap_err().to_string(), words);
        }
        let words = sent("", &"x".repeat(1000), "Ip", "198.51.100.7").read().unwrap_err().to_string();
        assert!(words.len() < 60, "{words}");
    }
}
