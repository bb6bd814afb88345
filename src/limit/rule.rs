//! The part of a limit that a store needs, and the check that it can work.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;

use super::Algorithm;
use super::Rate;
use super::Rates;
use crate::outcome::Outcome;

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

/// Which requests are charged.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum Count {
    /// Requests that pass.
    #[default]
    Requests,
    /// Denied requests too, so that a client that goes on stays denied.
    Attempts,
    /// Requests that pass and whose outcome is a failure. They are charged when they pass, and taken back after another
    /// outcome.
    Failures,
    /// The same for successes.
    Successes,
}

/// Why a rule cannot work.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidRule {
    #[error("a cost of {cost} never passes a rate of {rate}")]
    CostAboveCount { cost: NonZeroU32, rate: Rate },
    #[error("a cost of {cost} never passes a burst of {burst}")]
    CostAboveBurst { cost: NonZeroU32, burst: NonZeroU32 },
    #[error(
        "{count} in one window are too many for sliding-window-log, which remembers each (at most {MAX_LOGGED}): \
         add `algorithm: sliding-window-counter` or `algorithm: bucketed-window`"
    )]
    TooManyToLog { count: NonZeroU32 },
    #[error("{count} different values are too many to remember, at most {MAX_DISTINCT}")]
    TooManyDistinct { count: NonZeroU32 },
    #[error("{buckets} buckets are too many, at most {MAX_BUCKETS}")]
    TooManyBuckets { buckets: NonZeroU32 },
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

/// The same for all of its window. Logs of fewer entries are written whole.
const LEAST_LEASED: u32 = 129;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(algorithm: Algorithm, rates: &str, cost: u32, expected: Result<(), &str>) {
        let rates = rates.parse().expect(rates);
        let cost = NonZeroU32::new(cost).expect("costs are above zero");
        let found = Rule::Rates { algorithm, rates, cost }.check().map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    #[test]
    fn a_cost_that_no_window_holds_is_a_mistake() {
        let log = Algorithm::SlidingWindowLog;
        check(log, "5/second; 3/minute", 3, Ok(()));
        check(log, "5/second; 3/minute", 4, Err("a cost of 4 never passes a rate of 3/minute"));
        let burst = |burst| Algorithm::TokenBucket { burst: NonZeroU32::new(burst) };
        check(burst(5), "3/minute", 5, Ok(()));
        check(burst(5), "30/minute", 6, Err("a cost of 6 never passes a burst of 5"));
        check(burst(0), "3/minute", 4, Err("a cost of 4 never passes a rate of 3/minute"));
    }

    #[test]
    fn a_key_that_would_fill_the_memory_is_a_mistake() {
        check(Algorithm::SlidingWindowLog, "1000000/day", 1, Ok(()));
        check(Algorithm::SlidingWindowCounter, "1000001/day", 1, Ok(()));
        check(
            Algorithm::SlidingWindowLog,
            "1000001/day",
            1,
            Err("1000001 in one window are too many for sliding-window-log, which remembers each (at most 1000000): \
                 add `algorithm: sliding-window-counter` or `algorithm: bucketed-window`"),
        );
        let buckets = |buckets| Algorithm::BucketedWindow { buckets: NonZeroU32::new(buckets) };
        check(buckets(10_080), "5/week", 1, Ok(()));
        check(buckets(10_081), "5/week", 1, Err("10081 buckets are too many, at most 10080"));
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
