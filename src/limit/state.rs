//! What is remembered about one key under one limit: the algorithms behind one face.

use std::time::Duration;

use smallvec::SmallVec;

use super::Rule;
use crate::clock::Timestamp;

/// The memory of one key. Follows the rule it is given: a changed rate keeps what was counted, a changed
/// algorithm begins anew.
#[derive(Clone, Debug)]
pub enum State {}

/// Where a key stands with one rate: shown to clients and people.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Standing {
    /// How many more may pass now.
    pub remaining: u64,
    /// How long until more may pass than now; zero when nothing is used.
    pub reset: Duration,
}

/// One standing for each rate of a limit, in the order of the rates.
pub type Standings = SmallVec<[Standing; 4]>;

impl State {
    /// Nothing counted yet.
    pub fn fresh(_rule: &Rule) -> Self {
        todo!()
    }

    /// When one more request may be charged; `None` when that is now. For `concurrent` a refusal has no known end:
    /// it answers a second from now.
    pub fn opens_at(&self, _rule: &Rule, _now: Timestamp) -> Option<Timestamp> {
        todo!()
    }

    /// Counts one request, whether or not it passes: who asks `opens_at` first decides.
    pub fn charge(&mut self, _rule: &Rule, _now: Timestamp) {
        todo!()
    }

    /// Gives back a slot in flight.
    pub fn release(&mut self) {
        todo!()
    }

    pub fn standings(&self, _rule: &Rule, _now: Timestamp) -> Standings {
        todo!()
    }

    /// From when on this memory says the same as no memory; `None` while requests are in flight.
    pub fn expires_at(&self, _rule: &Rule) -> Option<Timestamp> {
        todo!()
    }
}
