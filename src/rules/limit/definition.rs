//! A limit of the configuration.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Action, Rates, Then};
use crate::rules::key::{Descriptor, DescriptorEntry, KeyPart, KeySpec, Selector};
use crate::rules::limit::Rate;
use crate::rules::list::ListId;
use crate::rules::outcome::Outcome;
use crate::words::glob::Glob;
use crate::words::word::{Help, words};

/// The position of a limit in the policy that holds it.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LimitId(pub u16);

/// How often a key may do something, and what happens beyond.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    pub name: Arc<str>,
    pub key: KeySpec,
    pub missing: Missing,
    pub rule: Rule,
    pub count: Count,
    /// Which descriptors it meets, in a domain.
    pub descriptors: DescriptorFilter,
    /// `distinct`: different values of this part are counted instead of requests.
    pub distinct: Option<KeyPart>,
    /// The outcome that resets the key.
    pub reset_on: Option<ResetOutcome>,
    pub then: Then,
    /// Decided and counted as if it were the only limit, but never applied.
    pub shadow: bool,
    /// The limit does not hold for members of these lists.
    pub unless: Vec<ListId>,
    /// `known_client` in `unless`: the limit does not hold for known clients.
    pub unless_known: bool,
    pub headers: Detail,
    pub on_failure: OnFailure,
    /// Whether gateways may lease units of it from a store that they share.
    pub leases: bool,
}

impl Limit {
    /// Whether it is a shadow where the configuration leaves it out.
    pub const SHADOW: bool = false;

    /// Whether a gateway may hold units that another one would let pass: not where a request beyond the limit bans its key.
    pub fn may_be_held(&self) -> bool {
        self.leases && !matches!(self.then.action, Action::Ban(_))
    }

    /// The rates whose state responses may show; `None`: it is hidden, or the limit has no rates of requests.
    pub fn shown_rates(&self) -> Option<&Rates> {
        match &self.rule {
            Rule::Rates { rates, .. } if self.headers == Detail::Full && !self.shadow => Some(rates),
            _ => None,
        }
    }
}

words! {
    /// The behaviour of a limit during an outage of the shared store.
    #[derive(Default)]
    pub enum OnFailure {
        /// Counts by the same rule in this process.
        #[default]
        Local = "local",
        /// Requests pass uncounted.
        Allow = "allow",
        /// No request passes.
        Deny = "deny",
    }
}

words! {
    /// How a request is counted that lacks a part of the key.
    #[derive(Default)]
    pub enum Missing {
        /// Under the empty value, which all such requests share.
        #[default]
        Count = "count",
        /// Not at all: the limit does not hold for it.
        Skip = "skip",
        /// Not at all: the request is denied.
        Deny = "deny",
    }
}

words! {
    /// Which headers show the state of a limit.
    #[derive(Default)]
    pub enum Detail {
        /// `RateLimit`, `RateLimit-Policy` and `Retry-After`.
        #[default]
        Full = "full",
        RetryAfter = "retry_after",
        None = "none",
    }
}

// The part of a limit that a store needs, and the check that it can work.

/// The longest log of one key: 8 MB. For higher counts the other algorithms are precise enough.
pub const MAX_LOGGED: u32 = 1_000_000;

/// The most different values of one key: 16 bytes each, searched one by one.
pub const MAX_DISTINCT: u32 = 10_000;

/// The finest useful division of a window: a week in minutes.
pub const MAX_BUCKETS: u32 = 10_080;

/// The shortest window of a limit that is leased, or the shortest time in which its bucket empties.
const SHORTEST_LEASED: Duration = Duration::from_secs(30);

/// How many units a second a limit lets pass at least if it is leased.
const LEAST_LEASED_PACE: u64 = 4;

/// How many units a whole window lets pass at least if the limit is leased. Shorter logs are written whole.
const LEAST_LEASED: u32 = 129;

/// How much a limit lets pass.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Rule {
    /// This many units in each window. A request is charged `cost` units.
    Rates { algorithm: Algorithm, rates: Rates, cost: NonZeroU32 },
    /// This many requests at once.
    Concurrent(NonZeroU32),
    /// This many different values in each window. A value that is in the window already costs nothing, and its time
    /// starts again.
    Distinct(Rates),
}

words! {
    /// Which requests are charged.
    #[derive(Default)]
    pub enum Count {
        /// Requests that pass.
        #[default]
        Requests = "requests",
        /// Denied requests too, so that a client that goes on stays denied.
        Attempts = "attempts",
        /// Requests that pass and whose outcome is a failure. They are charged when they pass, and taken back after another
        /// outcome.
        Failures = "failures",
        /// Counts successes.
        Successes = "successes",
    }
}

/// Why a rule cannot work.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidRule {
    #[error("a cost of {cost} never passes a rate of {rate}")]
    CostAboveCount { cost: NonZeroU32, rate: Rate },
    #[error("a cost of {cost} never passes a burst of {burst}")]
    CostAboveBurst { cost: NonZeroU32, burst: NonZeroU32 },
    #[error("{count} in one window are too many for sliding-window-log, which remembers each (at most {MAX_LOGGED})")]
    TooManyToLog { count: NonZeroU32 },
    #[error("{count} different values are too many to remember")]
    TooManyDistinct { count: NonZeroU32 },
    #[error("{buckets} buckets are too many")]
    TooManyBuckets { buckets: NonZeroU32 },
}

impl Help for InvalidRule {
    fn help(&self) -> String {
        match self {
            Self::CostAboveCount { .. } => "lower the cost, or raise the rate".to_owned(),
            Self::CostAboveBurst { .. } => "lower the cost, or raise `burst`".to_owned(),
            Self::TooManyToLog { .. } => {
                "add `algorithm: sliding-window-counter` or `algorithm: bucketed-window`".to_owned()
            }
            Self::TooManyDistinct { .. } => format!("write at most `{MAX_DISTINCT}`"),
            Self::TooManyBuckets { .. } => format!("write at most `{MAX_BUCKETS}`"),
        }
    }
}

words! {
    /// The outcome that resets a limit. No answer that is neither resets one.
    pub enum ResetOutcome {
        Success = "success",
        Failure = "failure",
    }
}

impl From<ResetOutcome> for Outcome {
    fn from(reset_on: ResetOutcome) -> Self {
        match reset_on {
            ResetOutcome::Success => Self::Success,
            ResetOutcome::Failure => Self::Failure,
        }
    }
}

impl Count {
    /// The outcome that is counted; `None`: every outcome.
    pub fn outcome(self) -> Option<Outcome> {
        match self {
            Self::Requests | Self::Attempts => None,
            Self::Failures => Some(Outcome::Failure),
            Self::Successes => Some(Outcome::Success),
        }
    }
}

impl Rule {
    /// Where the configuration leaves it out.
    pub const COST: NonZeroU32 = NonZeroU32::MIN;

    /// The rates; `None` for `concurrent`.
    pub fn rates(&self) -> Option<&Rates> {
        match self {
            Self::Rates { rates, .. } | Self::Distinct(rates) => Some(rates),
            Self::Concurrent(_) => None,
        }
    }

    /// Whether it counts slots in flight.
    pub fn is_slots(&self) -> bool {
        matches!(self, Self::Concurrent(_))
    }

    /// Whether a gateway may lease units of a key, to spend them without asking the store for each. So long as a lease lasts its
    /// units count, spent or not: that is too long beside a short window, and too much of a small count.
    pub fn may_be_leased(&self) -> bool {
        let (algorithm, rates) = match self {
            Self::Rates { algorithm, rates, .. } => (algorithm, rates),
            Self::Concurrent(most) => return most.get() >= LEAST_LEASED,
            Self::Distinct(_) => return false,
        };
        let is_wide = |rate: &Rate| {
            let capacity = algorithm.capacity(rate);
            let is_busy = u64::from(rate.count.get()) >= rate.per.as_secs().saturating_mul(LEAST_LEASED_PACE);
            // How long a key that is used up takes to have all its room again.
            let refill = rate.per.as_secs().saturating_mul(u64::from(capacity.get())) / u64::from(rate.count.get());
            is_busy && capacity.get() >= LEAST_LEASED && refill >= SHORTEST_LEASED.as_secs()
        };
        rates.iter().all(is_wide)
    }

    /// Whether a request can ever pass, and whether the memory of one key is bounded well.
    ///
    /// The memory of one key is at most 8 bytes for each request of the largest count under `sliding-window-log`, 16
    /// bytes a bucket and rate under `bucketed-window` (never more buckets than the count), and a few words a rate
    /// under the others.
    pub fn check(&self) -> Result<(), InvalidRule> {
        let (algorithm, rates, cost) = match self {
            Self::Rates { algorithm, rates, cost } => (algorithm, rates, cost),
            Self::Distinct(rates) if rates.largest_count().get() > MAX_DISTINCT => {
                return Err(InvalidRule::TooManyDistinct { count: rates.largest_count() });
            }
            Self::Distinct(_) | Self::Concurrent(_) => return Ok(()),
        };
        let cost = *cost;
        match *algorithm {
            Algorithm::TokenBucket { burst: Some(burst) } if burst < cost => {
                return Err(InvalidRule::CostAboveBurst { cost, burst });
            }
            // The burst alone bounds what passes at once.
            Algorithm::TokenBucket { burst: Some(_) } => return Ok(()),
            Algorithm::SlidingWindowLog if rates.largest_count().get() > MAX_LOGGED => {
                return Err(InvalidRule::TooManyToLog { count: rates.largest_count() });
            }
            Algorithm::BucketedWindow { buckets: Some(buckets) } if buckets.get() > MAX_BUCKETS => {
                return Err(InvalidRule::TooManyBuckets { buckets });
            }
            _ => {}
        }
        match rates.iter().find(|rate| rate.count < cost) {
            Some(rate) => Err(InvalidRule::CostAboveCount { cost, rate: *rate }),
            None => Ok(()),
        }
    }
}

// The algorithms that count requests, and their options.

/// How requests are counted against rates.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum Algorithm {
    #[default]
    SlidingWindowLog,
    SlidingWindowCounter,
    /// `None`: buckets of one minute, or of a tenth of a window under ten minutes.
    BucketedWindow {
        buckets: Option<NonZeroU32>,
    },
    FixedWindow,
    /// `None`: the count of the rate.
    TokenBucket {
        burst: Option<NonZeroU32>,
    },
}

words! {
    /// An algorithm without its options, as it is written.
    #[derive(Default)]
    pub enum AlgorithmName {
        #[default]
        SlidingWindowLog = "sliding-window-log",
        SlidingWindowCounter = "sliding-window-counter",
        BucketedWindow = "bucketed-window",
        FixedWindow = "fixed-window",
        TokenBucket = "token-bucket",
    }
}

impl Algorithm {
    /// The algorithm of this name, with this value of its option if it has one: `None` is the option's default.
    pub fn of(name: AlgorithmName, option: Option<NonZeroU32>) -> Self {
        match name {
            AlgorithmName::SlidingWindowLog => Self::SlidingWindowLog,
            AlgorithmName::SlidingWindowCounter => Self::SlidingWindowCounter,
            AlgorithmName::BucketedWindow => Self::BucketedWindow { buckets: option },
            AlgorithmName::FixedWindow => Self::FixedWindow,
            AlgorithmName::TokenBucket => Self::TokenBucket { burst: option },
        }
    }

    /// Each algorithm, with the default of its option.
    pub fn all() -> [Self; AlgorithmName::ALL.len()] {
        AlgorithmName::ALL.map(|name| Self::of(name, None))
    }

    pub fn name(self) -> AlgorithmName {
        match self {
            Self::SlidingWindowLog => AlgorithmName::SlidingWindowLog,
            Self::SlidingWindowCounter => AlgorithmName::SlidingWindowCounter,
            Self::BucketedWindow { .. } => AlgorithmName::BucketedWindow,
            Self::FixedWindow => AlgorithmName::FixedWindow,
            Self::TokenBucket { .. } => AlgorithmName::TokenBucket,
        }
    }

    /// How many units of this rate may pass at once.
    pub fn capacity(self, rate: &Rate) -> NonZeroU32 {
        match self {
            Self::TokenBucket { burst: Some(burst) } => burst,
            _ => rate.count,
        }
    }
}

// Which descriptors a limit of a domain meets.

/// The conditions for a descriptor to meet a limit, beside having every entry of its key.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DescriptorFilter {
    /// It has an entry of each name, with a value that matches.
    pub values: Vec<(Box<str>, Glob)>,
    /// No entry of these names has a value that matches one of the patterns.
    pub except: Vec<(Box<str>, Vec<Glob>)>,
    pub entries: EntrySet,
    /// The limits of these names do not apply to a call in which this limit is met.
    pub replaces: Vec<Arc<str>>,
}

words! {
    /// Whether a descriptor may have entries that the limit does not name.
    #[derive(Default)]
    pub enum EntrySet {
        #[default]
        AtLeast = "at_least",
        /// It has the entries of the key and of `values`, each once, and no others.
        Exact = "exact",
    }
}

/// Why a descriptor does not meet a limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DescriptorMismatch<'f> {
    Lacks(&'f str),
    Value(&'f str, &'f Glob),
    Excepted(&'f str, &'f Glob),
    /// It has an entry that the limit does not name.
    Further(&'f str),
    Repeated(&'f str),
}

impl DescriptorFilter {
    /// Whether a descriptor meets a limit with this filter and this key.
    pub fn meets(&self, key: &KeySpec, descriptor: &Descriptor) -> bool {
        self.mismatch(key, descriptor).is_none()
    }

    /// Why a descriptor does not meet a limit with this filter and this key; `None`: it does.
    pub fn mismatch<'f>(&'f self, key: &'f KeySpec, descriptor: &'f Descriptor) -> Option<DescriptorMismatch<'f>> {
        let lacked = names(key).find(|name| descriptor.values(name).next().is_none());
        if let Some(name) = lacked {
            return Some(DescriptorMismatch::Lacks(name));
        }
        for (name, glob) in &self.values {
            if !descriptor.values(name).any(|value| glob.matches(value)) {
                let has = descriptor.values(name).next().is_some();
                return Some(if has { DescriptorMismatch::Value(name, glob) } else { DescriptorMismatch::Lacks(name) });
            }
        }
        for (name, globs) in &self.except {
            for value in descriptor.values(name) {
                if let Some(glob) = globs.iter().find(|glob| glob.matches(value)) {
                    return Some(DescriptorMismatch::Excepted(name, glob));
                }
            }
        }
        match self.entries {
            EntrySet::AtLeast => None,
            EntrySet::Exact => self.surplus(key, descriptor),
        }
    }

    /// The first entry that is not named, or that has the name of another.
    fn surplus<'f>(&self, key: &KeySpec, descriptor: &'f Descriptor) -> Option<DescriptorMismatch<'f>> {
        let is_named =
            |name: &str| names(key).chain(self.values.iter().map(|(known, _)| &**known)).any(|known| known == name);
        descriptor.entries.iter().find_map(|DescriptorEntry { name, .. }| match () {
            () if !is_named(name) => Some(DescriptorMismatch::Further(name)),
            () if descriptor.values(name).count() > 1 => Some(DescriptorMismatch::Repeated(name)),
            () => None,
        })
    }
}

/// The entries that a key names.
fn names(key: &KeySpec) -> impl Iterator<Item = &str> {
    key.parts.iter().filter_map(|part| match &part.selector {
        Selector::Descriptor(name) => Some(&**name),
        _ => None,
    })
}

impl fmt::Display for DescriptorMismatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lacks(name) => write!(f, "there is no entry {name:?}"),
            Self::Value(name, glob) => write!(f, "the entry {name:?} is not {glob}"),
            Self::Excepted(name, glob) => write!(f, "the entry {name:?} is {glob}, which `except` frees"),
            Self::Further(name) => write!(f, "there is another entry, {name:?}, and `entries: exact` allows none"),
            Self::Repeated(name) => write!(f, "the entry {name:?} is there twice, and `entries: exact` allows one"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::key::{KeyPart, Spelling};

    fn key(names: &[&str]) -> KeySpec {
        let part = |name: &&str| KeyPart { selector: Selector::Descriptor((*name).into()), spelling: Spelling::Usual };
        KeySpec { parts: names.iter().map(part).collect(), ..KeySpec::default() }
    }

    fn descriptor(entries: &[(&str, &str)]) -> Descriptor {
        let entry = |(name, value): &(&str, &str)| DescriptorEntry { name: (*name).into(), value: (*value).into() };
        Descriptor { entries: entries.iter().map(entry).collect() }
    }

    #[track_caller]
    fn check(filter: &DescriptorFilter, entries: &[(&str, &str)], expected: bool) {
        assert_eq!(filter.meets(&key(&["user"]), &descriptor(entries)), expected, "{entries:?}");
    }

    #[test]
    fn a_descriptor_may_have_more_entries_than_the_key() {
        let filter = DescriptorFilter::default();
        check(&filter, &[("user", "a")], true);
        check(&filter, &[("user", "")], true);
        check(&filter, &[("path", "/"), ("user", "a")], true);
        check(&filter, &[("path", "/")], false);
        check(&filter, &[], false);
        assert!(filter.meets(&key(&[]), &descriptor(&[])), "a key without parts is in every descriptor");
    }

    #[test]
    fn values_must_match_with_their_case() {
        let filter = DescriptorFilter { values: vec![("tier".into(), Glob::of_entry("gold*"))], ..Default::default() };
        check(&filter, &[("user", "a"), ("tier", "gold-2")], true);
        check(&filter, &[("user", "a"), ("tier", "Gold")], false);
        check(&filter, &[("user", "a")], false);
        check(&filter, &[("user", "a"), ("tier", "lead"), ("tier", "gold")], true);
    }

    #[test]
    fn an_excepted_value_frees_a_descriptor() {
        let except = vec![("user".into(), vec![Glob::of_entry("root"), Glob::of_entry("ops-*")])];
        let filter = DescriptorFilter { except, ..Default::default() };
        check(&filter, &[("user", "a")], true);
        check(&filter, &[("user", "root")], false);
        check(&filter, &[("user", "ops-7")], false);
        check(&filter, &[("user", "Root")], true);
    }

    #[test]
    fn exact_entries_allow_no_others_and_none_twice() {
        let values = vec![("tier".into(), Glob::of_entry("gold"))];
        let filter = DescriptorFilter { values, entries: EntrySet::Exact, ..Default::default() };
        check(&filter, &[("user", "a"), ("tier", "gold")], true);
        check(&filter, &[("tier", "gold"), ("user", "a")], true);
        check(&filter, &[("user", "a"), ("tier", "gold"), ("path", "/")], false);
        check(&filter, &[("user", "a"), ("user", "b"), ("tier", "gold")], false);
    }

    #[track_caller]
    fn check_definition(algorithm: Algorithm, rates: &str, cost: u32, expected: Result<(), &str>) {
        let rates = rates.parse().expect(rates);
        let cost = NonZeroU32::new(cost).expect("costs are above zero");
        let found = Rule::Rates { algorithm, rates, cost }.check().map_err(|error| error.sentence());
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    #[test]
    fn a_cost_that_no_window_holds_is_a_mistake() {
        let log = Algorithm::SlidingWindowLog;
        check_definition(log, "5/second; 3/minute", 3, Ok(()));
        check_definition(
            log,
            "5/second; 3/minute",
            4,
            Err("a cost of 4 never passes a rate of 3/minute, lower the cost, or raise the rate"),
        );
        let burst = |burst| Algorithm::TokenBucket { burst: NonZeroU32::new(burst) };
        check_definition(burst(5), "3/minute", 5, Ok(()));
        check_definition(
            burst(5),
            "30/minute",
            6,
            Err("a cost of 6 never passes a burst of 5, lower the cost, or raise `burst`"),
        );
        check_definition(
            burst(0),
            "3/minute",
            4,
            Err("a cost of 4 never passes a rate of 3/minute, lower the cost, or raise the rate"),
        );
    }

    #[test]
    fn a_key_that_would_fill_the_memory_is_a_mistake() {
        check_definition(Algorithm::SlidingWindowLog, "1000000/day", 1, Ok(()));
        check_definition(Algorithm::SlidingWindowCounter, "1000001/day", 1, Ok(()));
        check_definition(
            Algorithm::SlidingWindowLog,
            "1000001/day",
            1,
            Err("1000001 in one window are too many for sliding-window-log, which remembers each (at most 1000000), \
                 add `algorithm: sliding-window-counter` or `algorithm: bucketed-window`"),
        );
        let buckets = |buckets| Algorithm::BucketedWindow { buckets: NonZeroU32::new(buckets) };
        check_definition(buckets(10_080), "5/week", 1, Ok(()));
        check_definition(buckets(10_081), "5/week", 1, Err("10081 buckets are too many, write at most `10080`"));
    }

    #[test]
    fn only_keys_with_much_room_for_long_are_leased() {
        let may = |algorithm, rates: &str| {
            let rates = rates.parse().expect(rates);
            Rule::Rates { algorithm, rates, cost: NonZeroU32::MIN }.may_be_leased()
        };
        let log = Algorithm::SlidingWindowLog;
        assert!(may(log, "6000/minute") && may(log, "240/minute; 14400/hour") && may(log, "129 per 30 seconds"));
        for rates in ["239/minute", "100/second", "1000/second; 6000/minute", "6000/minute; 14399/hour"] {
            assert!(!may(log, rates), "{rates}");
        }
        assert!(!may(log, "1000 per 29 seconds") && may(Algorithm::FixedWindow, "6000/minute"));
        let bucket = |burst| Algorithm::TokenBucket { burst: NonZeroU32::new(burst) };
        assert!(may(bucket(0), "6000/minute") && may(bucket(3000), "100/second") && may(bucket(3000), "6000/minute"));
        assert!(!may(bucket(2900), "100/second") && !may(bucket(128), "240/minute") && !may(bucket(900), "239/minute"));
        let slots = |most| Rule::Concurrent(NonZeroU32::new(most).expect("above zero")).may_be_leased();
        assert!(slots(129) && !slots(128));
    }
}
