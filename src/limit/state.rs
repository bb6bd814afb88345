//! What is remembered about one key under one limit: the algorithms behind one face.

use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;
use smallvec::SmallVec;

use super::Algorithm;
use super::Rule;
use super::Standings;
use super::bucketed::Bucketed;
use super::concurrency::InFlight;
use super::distinct::Distinct;
use super::fixed_window::FixedWindow;
use super::memory::RateMemory;
use super::sliding_counter::SlidingCounter;
use super::sliding_log::SlidingLog;
use super::token_bucket::TokenBucket;
use super::window::Windows;
use crate::clock::Timestamp;

/// The memory of one key. Follows the rule it is given: a changed rate keeps what was counted, a changed
/// algorithm begins anew.
///
/// No moment given to it lies before one given earlier, or else it is taken for the earlier one's: a clock that steps
/// back opens nothing early.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct State(Kind);

#[derive(Clone, Debug, Deserialize, Serialize)]
enum Kind {
    Log(SlidingLog),
    Counter(Windows<SlidingCounter>),
    Bucketed(Windows<Bucketed>),
    Fixed(Windows<FixedWindow>),
    Token(Windows<TokenBucket>),
    Concurrent(InFlight),
    /// In a box of its own, so that other keys stay small.
    Distinct(Box<Distinct>),
}

impl State {
    /// Nothing counted yet. Takes no memory beyond itself.
    pub fn fresh(rule: &Rule) -> Self {
        Self(match rule {
            Rule::Concurrent(_) => Kind::Concurrent(InFlight::default()),
            Rule::Rates { algorithm, .. } => Kind::fresh(*algorithm),
            Rule::Distinct(_) => Kind::Distinct(Box::default()),
        })
    }

    /// When one more request may be charged; `None` when that is now. For `concurrent` a refusal has no known end:
    /// it answers a second from now. `items` are the values to be told apart; empty unless the rule is `distinct`.
    ///
    /// A rule under which no request ever passes (see [`Rule::check`]) answers a moment that never holds.
    pub fn opens_at(&self, rule: &Rule, items: &[u64], now: Timestamp) -> Option<Timestamp> {
        match rule {
            Rule::Concurrent(most) => (self.in_flight() >= most.get()).then(|| now + Duration::from_secs(1)),
            Rule::Distinct(rates) => match &self.0 {
                Kind::Distinct(memory) => memory.opens_at(rates, items, now.as_micros()).map(Timestamp::from_micros),
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

    /// Those of the values that are in no window, and so would cost something; none unless the rule is `distinct`.
    pub fn unseen(&self, rule: &Rule, items: &[u64], now: Timestamp) -> SmallVec<[u64; 1]> {
        match (rule, &self.0) {
            (Rule::Distinct(rates), Kind::Distinct(memory)) => memory.unseen(rates, items, now.as_micros()),
            (Rule::Distinct(rates), _) => Distinct::default().unseen(rates, items, now.as_micros()),
            _ => SmallVec::new(),
        }
    }

    /// Counts one request, whether or not it passes: who asks `opens_at` first decides. Answers when it is counted,
    /// which is later than `now` where the clock stepped back.
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

    /// Counts a request no more that was counted at `moment`; `fresh` are its values that were [`unseen`](Self::unseen)
    /// then. Where it is not known any more what a request changed, what is given back is less, never more:
    ///
    /// - log: as many entries as it cost go, the newest that are not after `moment`;
    /// - sliding and bucketed windows: its cost goes from the window, or bucket, that `moment` lies in;
    /// - fixed window: its cost goes from the window that is open, if it was open at `moment` already; the window does
    ///   not move;
    /// - token bucket: the level sinks by its cost, less what may have leaked of it until the last request was counted;
    /// - `distinct`: those of its values go that were not counted again since.
    ///
    /// A slot in flight is given back by [`release`](Self::release).
    pub fn take_back(&mut self, rule: &Rule, fresh: &[u64], moment: Timestamp) {
        match (rule, &mut self.0) {
            (Rule::Distinct(_), Kind::Distinct(memory)) => memory.take_back(fresh, moment.as_micros()),
            (Rule::Rates { algorithm, rates, cost }, kind) if kind.memory(*algorithm).is_some() => {
                kind.memory_mut(*algorithm).take_back(rates, *algorithm, cost.get(), moment.as_micros());
            }
            // It was counted by another algorithm, of which nothing is left.
            _ => {}
        }
    }

    /// Gives back a slot in flight.
    pub fn release(&mut self) {
        if let Kind::Concurrent(in_flight) = &mut self.0 {
            in_flight.release();
        }
    }

    /// How many requests hold a slot; none where rates are counted.
    pub fn in_flight(&self) -> u32 {
        if let Kind::Concurrent(in_flight) = &self.0 { in_flight.count() } else { 0 }
    }

    /// Where the key stands with each rate; empty for `concurrent`.
    pub fn standings(&self, rule: &Rule, now: Timestamp) -> Standings {
        match (rule, &self.0) {
            (Rule::Concurrent(_), _) => Standings::new(),
            (Rule::Distinct(rates), Kind::Distinct(memory)) => memory.standings(rates, now.as_micros()),
            (Rule::Distinct(_), _) => Self::fresh(rule).standings(rule, now),
            (Rule::Rates { algorithm, rates, .. }, kind) => match kind.memory(*algorithm) {
                Some(memory) => memory.standings(rates, *algorithm, now.as_micros()),
                None => Self::fresh(rule).standings(rule, now),
            },
        }
    }

    /// From when on this memory says the same as no memory; `None` while requests are in flight.
    pub fn expires_at(&self, rule: &Rule) -> Option<Timestamp> {
        if self.in_flight() > 0 {
            return None;
        }
        let expires = match (rule, &self.0) {
            (Rule::Rates { algorithm, rates, .. }, kind) => {
                kind.memory(*algorithm).map_or(0, |memory| memory.expires_at(rates, *algorithm))
            }
            (Rule::Distinct(rates), Kind::Distinct(memory)) => memory.expires_at(rates),
            _ => 0,
        };
        Some(Timestamp::from_micros(expires))
    }
}

impl Kind {
    fn fresh(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::SlidingWindowLog => Self::Log(SlidingLog::new()),
            Algorithm::SlidingWindowCounter => Self::Counter(Windows::new()),
            Algorithm::BucketedWindow { .. } => Self::Bucketed(Windows::new()),
            Algorithm::FixedWindow => Self::Fixed(Windows::new()),
            Algorithm::TokenBucket { .. } => Self::Token(Windows::new()),
        }
    }

    /// What is remembered for this algorithm; `None` when it was another until now.
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

    fn in_flight(&mut self) -> &mut InFlight {
        if !matches!(self, Self::Concurrent(_)) {
            *self = Self::Concurrent(InFlight::default());
        }
        match self {
            Self::Concurrent(in_flight) => in_flight,
            _ => unreachable!("it was just made so"),
        }
    }
}

#[cfg(test)]
mod tests;
