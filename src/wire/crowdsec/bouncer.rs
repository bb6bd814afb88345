//! Reads the decisions of a Local API as a bouncer.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use ipnet::IpNet;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::task;
use tokio::time::timeout;

use super::{DecisionStream, Lapi, LapiError, Secret};
use crate::wire::crowdsec::decision_stream::{BoundedReader, MOST};
use crate::wire::http_client::root_cause;
use crate::words::clock::Timestamp;
use crate::words::network_width::shortest_prefix;

/// Between two frames of an answer.
const FRAME_TIMEOUT: Duration = Duration::from_secs(10);

/// For a whole answer.
const BODY_TIMEOUT: Duration = Duration::from_secs(120);

/// How many frames wait for the parser.
const MOST_FRAMES: usize = 4;

/// A bouncer of a Local API.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Bouncer {
    pub lapi: Lapi,
    pub key: Secret,
}

impl Bouncer {
    /// Asks for all decisions in force.
    pub async fn all_decisions(&self) -> Result<DecisionStream, LapiError> {
        self.poll("/v1/decisions/stream?startup=true", true).await
    }

    /// Asks for the changes since the last answer to this key. After a failure it is unknown whether the API counts the
    /// question as answered: then ask for all decisions.
    pub async fn changed_decisions(&self) -> Result<DecisionStream, LapiError> {
        self.poll("/v1/decisions/stream", false).await
    }

    async fn poll(&self, path: &str, is_from_start: bool) -> Result<DecisionStream, LapiError> {
        let key = Some(("x-api-key", self.key.header()));
        let mut body = self.lapi.send(Method::GET, path, key, Bytes::new()).await?.into_body();
        let (frames, waiting) = mpsc::channel(MOST_FRAMES);
        // A long answer takes a while to parse, and this thread has others to serve.
        let parsing = task::spawn_blocking(move || DecisionStream::read(BoundedReader::new(waiting), is_from_start));
        let received = timeout(BODY_TIMEOUT, receive(&mut body, frames)).await;
        received.map_err(|_| LapiError::Timeout(BODY_TIMEOUT))??;
        let parsed = parsing.await.map_err(|error| LapiError::Malformed(error.to_string()))?;
        parsed.map_err(|error| LapiError::Malformed(error.to_string()))
    }
}

/// Hands the frames of a body to the parser, until the body ends or the parser has seen enough.
async fn receive(body: &mut Incoming, frames: mpsc::Sender<Bytes>) -> Result<(), LapiError> {
    loop {
        let frame = timeout(FRAME_TIMEOUT, body.frame()).await.map_err(|_| LapiError::Timeout(FRAME_TIMEOUT))?;
        let Some(frame) = frame else { return Ok(()) };
        let frame = frame.map_err(|error| LapiError::Malformed(root_cause(&error).to_string()))?;
        if let Ok(data) = frame.into_data()
            && frames.send(data).await.is_err()
        {
            return Ok(());
        }
    }
}

// The decisions that are in force, as far as the API has told.

/// When each known decision ends.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct KnownDecisions {
    ends: HashMap<Subject, Timestamp>,
}

impl KnownDecisions {
    /// Applies an answer of the API: first the deleted decisions, then the new ones. An answer from the start replaces
    /// all known decisions.
    pub fn apply(&mut self, answer: &DecisionStream, now: Timestamp) {
        if answer.is_from_start {
            self.ends.clear();
        }
        for subject in &answer.deleted {
            self.ends.remove(subject);
        }
        // A later answer is the API's last word on a subject. Within one answer the longest decision counts.
        let mut new: Vec<&Decision> = answer.new.iter().collect();
        new.sort_unstable_by_key(|decision| decision.left);
        for Decision { subject, left } in new {
            if self.ends.len() < MOST || self.ends.contains_key(subject) {
                self.ends.insert(*subject, now + *left);
            }
        }
        self.remove_ended(now);
    }

    /// Forgets decisions that have ended. Returns whether there were any.
    pub fn remove_ended(&mut self, now: Timestamp) -> bool {
        let before = self.ends.len();
        self.ends.retain(|_, end| *end > now);
        if self.ends.capacity() > 4 * self.ends.len() {
            self.ends.shrink_to(2 * self.ends.len());
        }
        self.ends.len() < before
    }

    /// When the first of them ends.
    pub fn next_end(&self) -> Option<Timestamp> {
        self.ends.values().min().copied()
    }

    /// The networks that decisions of this type are about.
    pub fn networks(&self, decision_type: DecisionType) -> impl Iterator<Item = IpNet> {
        let of_type = self.ends.keys().filter(move |subject| subject.decision_type == decision_type);
        of_type.map(|subject| subject.network)
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

// A list that follows the decisions of a Local API.

/// Where the members of a list come from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListSource {
    /// The name of the list.
    pub list: Arc<str>,
    pub bouncer: Bouncer,
    /// From one answer to the next question.
    pub every: Duration,
}

impl ListSource {
    /// `every` where the configuration leaves it out.
    pub const EVERY: Duration = Duration::from_secs(10);
}

// A decision about an address or a range.

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
        let left = parse(&self.duration).ok_or_else(|| Unfollowed::Duration(quoted(&self.duration)))?;
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
    use std::collections::BTreeMap;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::{Scope, *};

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

    const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

    fn subject(last: u8) -> Subject {
        let network = IpNet::new([198, 51, 100, last].into(), 32).unwrap();
        Subject { scope: Scope::Ip, decision_type: DecisionType::Ban, network }
    }

    fn answer(deleted: &[u8], new: &[(u8, u64)]) -> DecisionStream {
        let decision = |&(last, seconds)| Decision { subject: subject(last), left: Duration::from_secs(seconds) };
        DecisionStream {
            deleted: deleted.iter().copied().map(subject).collect(),
            new: new.iter().map(decision).collect(),
            ..DecisionStream::default()
        }
    }

    #[test]
    fn deleted_comes_before_new_and_is_known_by_its_subject() {
        let mut known = KnownDecisions::default();
        known.apply(&answer(&[1], &[(1, 60), (2, 60)]), NOW);
        assert_eq!(known.len(), 2);
        known.apply(&answer(&[1, 2], &[(1, 60)]), NOW);
        assert_eq!(known.networks(DecisionType::Ban).collect::<Vec<_>>(), [subject(1).network]);
        let range = Subject { scope: Scope::Range, ..subject(1) };
        known.apply(&DecisionStream { deleted: vec![range], ..DecisionStream::default() }, NOW);
        assert_eq!(known.len(), 1);
    }

    #[test]
    fn decisions_end_by_themselves() {
        let mut known = KnownDecisions::default();
        known.apply(&answer(&[], &[(1, 10), (2, 20), (3, 0)]), NOW);
        assert_eq!((known.len(), known.next_end()), (2, Some(NOW + Duration::from_secs(10))));
        assert!(!known.remove_ended(NOW + Duration::from_secs(9)));
        assert!(known.remove_ended(NOW + Duration::from_secs(10)));
        assert_eq!((known.len(), known.next_end()), (1, Some(NOW + Duration::from_secs(20))));
    }

    #[test]
    fn of_several_in_one_answer_the_longest_counts_and_a_later_answer_replaces_it() {
        let mut known = KnownDecisions::default();
        known.apply(&answer(&[], &[(1, 60), (1, 20)]), NOW);
        assert_eq!(known.next_end(), Some(NOW + Duration::from_secs(60)));
        known.apply(&answer(&[], &[(1, 30)]), NOW);
        assert_eq!(known.next_end(), Some(NOW + Duration::from_secs(30)));
    }

    #[test]
    fn an_answer_from_the_start_replaces_what_was_known() {
        let mut known = KnownDecisions::default();
        known.apply(&answer(&[], &[(1, 60), (2, 60)]), NOW);
        known.apply(&DecisionStream { is_from_start: true, ..answer(&[1, 3], &[(3, 60)]) }, NOW);
        assert_eq!(known.networks(DecisionType::Ban).collect::<Vec<_>>(), [subject(3).network]);
    }

    proptest! {
        /// Against a model that applies one change after another.
        #[test]
        fn any_history_comes_to_what_the_api_holds(
            answers in prop::collection::vec(
                (any::<bool>(), prop::collection::vec(0..8_u8, 0..5), prop::collection::vec((0..8_u8, 0..50_u64), 0..5), 0..20_u64),
                0..20,
            ),
        ) {
            let (mut known, mut model, mut now) = (KnownDecisions::default(), BTreeMap::new(), NOW);
            for (is_from_start, deleted, new, pause) in answers {
                if is_from_start {
                    model.clear();
                }
                model.retain(|last, _| !deleted.contains(last));
                let mut told = BTreeMap::new();
                for &(last, seconds) in &new {
                    let end = told.entry(last).or_insert(now);
                    *end = (*end).max(now + Duration::from_secs(seconds));
                }
                model.extend(told);
                known.apply(&DecisionStream { is_from_start, ..answer(&deleted, &new) }, now);
                now = now + Duration::from_secs(pause);
                known.remove_ended(now);
                model.retain(|_, end| *end > now);
                let expected: BTreeMap<Subject, Timestamp> = model.iter().map(|(last, end)| (subject(*last), *end)).collect();
                prop_assert_eq!(known.ends.iter().map(|(subject, end)| (*subject, *end)).collect::<BTreeMap<_, _>>(), expected);
            }
        }
    }
}
