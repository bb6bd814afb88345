//! What a store needs to know of a limit, and which of it can hold at all.

use std::num::NonZeroU32;

use serde::Deserialize;
use serde::Serialize;

use super::Algorithm;
use super::Rate;
use super::Rates;
use crate::outcome::Outcome;

/// What a store needs to know of a limit: how much passes.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Rule {
    /// So many per window; each request is charged `cost`.
    Rates { algorithm: Algorithm, rates: Rates, cost: NonZeroU32 },
    /// So many in flight.
    Concurrent(NonZeroU32),
    /// So many different values per window. One that is in the window already costs nothing, and is as new again.
    Distinct(Rates),
}

/// Which requests are charged.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum Count {
    /// Those let through.
    #[default]
    Requests,
    /// Denied ones too: hammering keeps the door shut.
    Attempts,
    /// Those let through whose answer is a failure. Charged when they pass, given back when it is none.
    Failures,
    /// Those let through whose answer is a success, likewise.
    Successes,
}

/// Why a rule is of no use.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidRule {
    #[error("a cost of {cost} never passes a rate of {rate}")]
    CostAboveCount { cost: NonZeroU32, rate: Rate },
    #[error("a cost of {cost} never passes a burst of {burst}")]
    CostAboveBurst { cost: NonZeroU32, burst: NonZeroU32 },
    #[error(
        "{count} in one window are too many for sliding-window-log, which remembers each (at most {MAX_LOGGED}): \
         use sliding-window-counter or bucketed-window"
    )]
    TooManyToLog { count: NonZeroU32 },
    #[error("{count} different values are too many to remember, at most {MAX_DISTINCT}")]
    TooManyDistinct { count: NonZeroU32 },
    #[error("{buckets} buckets are too many, at most {MAX_BUCKETS}")]
    TooManyBuckets { buckets: NonZeroU32 },
}

impl Count {
    /// The outcome that is counted; `None`: whatever the answer.
    pub fn outcome(self) -> Option<Outcome> {
        match self {
            Self::Requests | Self::Attempts => None,
            Self::Failures => Some(Outcome::Failure),
            Self::Successes => Some(Outcome::Success),
        }
    }
}

impl Rule {
    /// The rates; none where requests in flight are counted.
    pub fn rates(&self) -> Option<&Rates> {
        match self {
            Self::Rates { rates, .. } | Self::Distinct(rates) => Some(rates),
            Self::Concurrent(_) => None,
        }
    }

    /// Whether a request can ever pass, and whether one key's memory stays within reason.
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
            // What passes at once is the burst's to say.
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

/// The longest log of one key: 8 MB. Who counts more than a million can bear a bucket's imprecision.
pub const MAX_LOGGED: u32 = 1_000_000;

/// The most different values of one key that are told apart: 16 bytes each, looked through one by one.
pub const MAX_DISTINCT: u32 = 10_000;

/// The finest division of a window that is asked for: a week in minutes.
pub const MAX_BUCKETS: u32 = 10_080;

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
                 use sliding-window-counter or bucketed-window"),
        );
        let buckets = |buckets| Algorithm::BucketedWindow { buckets: NonZeroU32::new(buckets) };
        check(buckets(10_080), "5/week", 1, Ok(()));
        check(buckets(10_081), "5/week", 1, Err("10081 buckets are too many, at most 10080"));
    }
}
