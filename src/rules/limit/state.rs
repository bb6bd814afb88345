//! The state of one key under one limit, for all algorithms.

use std::fmt::Debug;
use std::mem::discriminant;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::bucketed::Bucketed;
use super::distinct::Distinct;
use super::fixed_window::FixedWindow;
use super::sliding_counter::SlidingCounter;
use super::sliding_log::SlidingLog;
use super::token_bucket::TokenBucket;
use super::window::Windows;
use super::{Algorithm, Rule};
use crate::rules::limit::Rates;
use crate::words::clock::Timestamp;

/// The state of one key. It follows the current rule: a changed rate keeps the count, a changed algorithm starts from
/// nothing.
///
/// A moment before an earlier one counts as the earlier one, so that a clock that steps back opens nothing early.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct State(AlgorithmState);

#[derive(Clone, Debug, Deserialize, Serialize)]
enum AlgorithmState {
    Log(SlidingLog),
    Counter(Windows<SlidingCounter>),
    Bucketed(Windows<Bucketed>),
    Fixed(Windows<FixedWindow>),
    Token(Windows<TokenBucket>),
    Concurrent(SlotCount),
    /// In a box, so that the states of other keys stay small.
    Distinct(Box<Distinct>),
}

impl State {
    /// Nothing counted yet. Takes no memory beyond itself.
    pub fn fresh(rule: &Rule) -> Self {
        Self(match rule {
            Rule::Concurrent(_) => AlgorithmState::Concurrent(SlotCount::default()),
            Rule::Rates { algorithm, .. } => AlgorithmState::fresh(*algorithm),
            Rule::Distinct(_) => AlgorithmState::Distinct(Box::default()),
        })
    }

    /// Whether what was counted for one rule counts for the other.
    pub fn is_shared(one: &Rule, other: &Rule) -> bool {
        discriminant(&Self::fresh(one).0) == discriminant(&Self::fresh(other).0)
    }

    /// When one more request may be charged; `None`: now. For `concurrent` that is not known, and the answer is one
    /// second from now. `items` are the values to count; empty unless the rule is `distinct`.
    ///
    /// For a rule that lets no request pass (see [`Rule::check`]) the answer is a moment at which it does not pass
    /// either.
    pub fn opens_at(&self, rule: &Rule, items: &[u64], now: Timestamp) -> Option<Timestamp> {
        match rule {
            Rule::Concurrent(most) => (self.in_flight() >= most.get()).then(|| now + Duration::from_secs(1)),
            Rule::Distinct(rates) => match &self.0 {
                AlgorithmState::Distinct(memory) => {
                    memory.opens_at(rates, items, now.as_micros()).map(Timestamp::from_micros)
                }
                _ => Self::fresh(rule).opens_at(rule, items, now),
            },
            Rule::Rates { algorithm, rates, cost } => {
                let Some(memory) = self.0.memory(*algorithm) else {
                    return Self::fresh(rule).opens_at(rule, items, now);
                };
                memory.opens_at(rates, *algorithm, cost.get(), now.as_micros()).map(Timestamp::from_micros)
            }
        }
    }

    /// The values that are in no window, and so would be charged; empty unless the rule is `distinct`.
    pub fn unseen(&self, rule: &Rule, items: &[u64], now: Timestamp) -> SmallVec<[u64; 1]> {
        match (rule, &self.0) {
            (Rule::Distinct(rates), AlgorithmState::Distinct(memory)) => memory.unseen(rates, items, now.as_micros()),
            (Rule::Distinct(rates), _) => Distinct::default().unseen(rates, items, now.as_micros()),
            _ => SmallVec::new(),
        }
    }

    /// Counts one request, whether or not there is room: the caller decides, by `opens_at`. Answers the moment of the
    /// count, which is later than `now` where the clock stepped back.
    pub fn charge(&mut self, rule: &Rule, items: &[u64], now: Timestamp) -> Timestamp {
        let moment = match rule {
            Rule::Concurrent(_) => {
                self.0.in_flight().take();
                return now;
            }
            Rule::Distinct(rates) => self.0.distinct().charge(rates, items, now.as_micros()),
            Rule::Rates { algorithm, rates, cost } => {
                self.0.memory_mut(*algorithm).charge(rates, *algorithm, cost.get(), now.as_micros())
            }
        };
        Timestamp::from_micros(moment)
    }

    /// Takes back a request that was counted at `moment`. `fresh` are its values that were [`unseen`](Self::unseen)
    /// then. Where the state no longer shows what the request changed, less is taken back, never more:
    ///
    /// - log: removes as many entries as the request cost, the newest ones that are not after `moment`;
    /// - sliding and bucketed windows: subtracts the cost from the window, or bucket, that `moment` lies in;
    /// - fixed window: subtracts the cost from the open window, if that was open at `moment` already, and does not move
    ///   it;
    /// - token bucket: lowers the level by the cost, less what may have leaked of it until the last request was
    ///   counted;
    /// - `distinct`: removes the values that were not counted again since.
    ///
    /// [`release`](Self::release) gives a concurrency slot back.
    pub fn take_back(&mut self, rule: &Rule, fresh: &[u64], moment: Timestamp) {
        match (rule, &mut self.0) {
            (Rule::Distinct(_), AlgorithmState::Distinct(memory)) => memory.take_back(fresh, moment.as_micros()),
            (Rule::Rates { algorithm, rates, cost }, kind) if kind.memory(*algorithm).is_some() => {
                kind.memory_mut(*algorithm).take_back(rates, *algorithm, cost.get(), moment.as_micros());
            }
            // Another algorithm counted it, and its state is gone.
            _ => {}
        }
    }

    /// Gives a concurrency slot back.
    pub fn release(&mut self) {
        if let AlgorithmState::Concurrent(in_flight) = &mut self.0 {
            in_flight.release();
        }
    }

    /// How many requests hold a slot. Zero unless the rule is `concurrent`.
    pub fn in_flight(&self) -> u32 {
        if let AlgorithmState::Concurrent(in_flight) = &self.0 { in_flight.count() } else { 0 }
    }

    /// Where the key stands with each rate; empty for `concurrent`.
    pub fn standings(&self, rule: &Rule, now: Timestamp) -> Standings {
        match (rule, &self.0) {
            (Rule::Concurrent(_), _) => Standings::new(),
            (Rule::Distinct(rates), AlgorithmState::Distinct(memory)) => memory.standings(rates, now.as_micros()),
            (Rule::Distinct(_), _) => Self::fresh(rule).standings(rule, now),
            (Rule::Rates { algorithm, rates, .. }, kind) => match kind.memory(*algorithm) {
                Some(memory) => memory.standings(rates, *algorithm, now.as_micros()),
                None => Self::fresh(rule).standings(rule, now),
            },
        }
    }

    /// From when on this state equals a fresh one; `None` while requests hold slots.
    pub fn expires_at(&self, rule: &Rule) -> Option<Timestamp> {
        if self.in_flight() > 0 {
            return None;
        }
        let expires = match (rule, &self.0) {
            (Rule::Rates { algorithm, rates, .. }, kind) => {
                kind.memory(*algorithm).map_or(0, |memory| memory.expires_at(rates, *algorithm))
            }
            (Rule::Distinct(rates), AlgorithmState::Distinct(memory)) => memory.expires_at(rates),
            _ => 0,
        };
        Some(Timestamp::from_micros(expires))
    }
}

impl AlgorithmState {
    fn fresh(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::SlidingWindowLog => Self::Log(SlidingLog::new()),
            Algorithm::SlidingWindowCounter => Self::Counter(Windows::new()),
            Algorithm::BucketedWindow { .. } => Self::Bucketed(Windows::new()),
            Algorithm::FixedWindow => Self::Fixed(Windows::new()),
            Algorithm::TokenBucket { .. } => Self::Token(Windows::new()),
        }
    }

    /// The state, if it belongs to this algorithm.
    fn memory(&self, algorithm: Algorithm) -> Option<&dyn RateMemory> {
        match (self, algorithm) {
            (Self::Log(memory), Algorithm::SlidingWindowLog) => Some(memory),
            (Self::Counter(memory), Algorithm::SlidingWindowCounter) => Some(memory),
            (Self::Bucketed(memory), Algorithm::BucketedWindow { .. }) => Some(memory),
            (Self::Fixed(memory), Algorithm::FixedWindow) => Some(memory),
            (Self::Token(memory), Algorithm::TokenBucket { .. }) => Some(memory),
            _ => None,
        }
    }

    fn memory_mut(&mut self, algorithm: Algorithm) -> &mut dyn RateMemory {
        if self.memory(algorithm).is_none() {
            *self = Self::fresh(algorithm);
        }
        match self {
            Self::Log(memory) => memory,
            Self::Counter(memory) => memory,
            Self::Bucketed(memory) => memory,
            Self::Fixed(memory) => memory,
            Self::Token(memory) => memory,
            Self::Concurrent(_) | Self::Distinct(_) => unreachable!("an algorithm remembers rates"),
        }
    }

    fn distinct(&mut self) -> &mut Distinct {
        if !matches!(self, Self::Distinct(_)) {
            *self = Self::Distinct(Box::default());
        }
        match self {
            Self::Distinct(memory) => memory,
            _ => unreachable!("it was just made so"),
        }
    }

    fn in_flight(&mut self) -> &mut SlotCount {
        if !matches!(self, Self::Concurrent(_)) {
            *self = Self::Concurrent(SlotCount::default());
        }
        match self {
            Self::Concurrent(in_flight) => in_flight,
            _ => unreachable!("it was just made so"),
        }
    }
}

// The operations of every algorithm of rates on the state of a key.

/// The state of an algorithm for one key. Moments are microseconds since the epoch.
pub(super) trait RateMemory: Debug {
    /// When `cost` more units have room under every rate; `None`: now.
    fn opens_at(&self, rates: &Rates, algorithm: Algorithm, cost: u32, now: u64) -> Option<u64>;

    /// Counts `cost` units under every rate, whether or not there is room. Answers the moment of the count.
    fn charge(&mut self, rates: &Rates, algorithm: Algorithm, cost: u32, now: u64) -> u64;

    /// Takes back `cost` units that were counted at `moment`.
    fn take_back(&mut self, rates: &Rates, algorithm: Algorithm, cost: u32, moment: u64);

    fn standings(&self, rates: &Rates, algorithm: Algorithm, now: u64) -> Standings;

    /// From when on this equals a fresh state.
    fn expires_at(&self, rates: &Rates, algorithm: Algorithm) -> u64;
}

/// The time from `now` until `then`.
pub(super) fn span(now: u64, then: u64) -> Duration {
    Duration::from_micros(then.saturating_sub(now))
}

// How much of each rate of a limit a key has left.

/// How much of one rate a key has left. Shown to clients and operators.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Standing {
    /// How many more units may pass now. A request has as many units as it costs.
    pub remaining: u64,
    /// How long until more units may pass than now. Zero when nothing is used.
    pub reset: Duration,
}

/// One standing for each rate of a limit, in the order of the rates. Few limits have more than three.
pub type Standings = SmallVec<[Standing; 3]>;

// Concurrency slots.

/// How many requests of one key hold a slot.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct SlotCount(u32);

impl SlotCount {
    pub(super) fn count(self) -> u32 {
        self.0
    }

    pub(super) fn take(&mut self) {
        self.0 = self.0.saturating_add(1);
    }

    /// Ignores a slot that was never taken, because the rule was of another kind then.
    pub(super) fn release(&mut self) {
        self.0 = self.0.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests;
