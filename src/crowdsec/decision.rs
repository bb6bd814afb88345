//! A decision about an address or a range.

use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;
use serde::Deserialize;

use super::duration;
use crate::network_width::shortest_prefix;

/// The origin of decisions that gateways report. They are not followed: the gateways know these bans already.
pub const ORIGIN: &str = "portcullis";

/// A decision that a gateway can follow.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Decision {
    pub subject: Subject,
    /// How long it still lasts.
    pub left: Duration,
}

/// What identifies a decision. Ids do not: of several decisions on one subject the API sends the longest, and when the last
/// of them is deleted it may name another.
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

/// Why a decision cannot be followed. With what was sent, quoted.
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
    /// Whether it is in force, and not our own. Of a deleted decision that says nothing: it may stand for another one on the
    /// same subject, which was deleted before.
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
        let left = duration::parse(&self.duration).ok_or_else(|| Unfollowed::Duration(quoted(&self.duration)))?;
        Ok(Decision { subject: Subject { scope, decision_type, network }, left })
    }
}

/// An address is a network of its full length.
fn network(value: &str) -> Option<IpNet> {
    let network = value.parse::<IpNet>().or_else(|_| value.parse::<IpAddr>().map(IpNet::from));
    network.ok().map(|network| network.trunc())
}

/// The beginning of a word that somebody else has sent, fit for a line of a log.
fn quoted(word: &str) -> String {
    let start: String = word.chars().take(MOST_QUOTED).collect();
    format!("{start:?}")
}

const MOST_QUOTED: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

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
