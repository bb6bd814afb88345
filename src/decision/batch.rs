//! The language of stores: what is asked of them, and what they answer. Stores know no requests.

use std::time::Duration;

use smallvec::SmallVec;

use crate::key::KeyHash;
use crate::limit::Count;
use crate::limit::OnFailure;
use crate::limit::Rule;
use crate::limit::state::Standings;

/// All charges of one request. A store decides them in one step.
///
/// The binding charges pass together or not at all: when every one of them has room, all are charged; when one has
/// none, only those that count attempts are. Charges of a shadow limit are decided as if that limit stood alone:
/// charged when all charges of the same `limit` number have room, whatever the others say.
#[derive(Clone, Debug, Default)]
pub struct Batch<'p> {
    pub charges: SmallVec<[Charge<'p>; 4]>,
}

/// One key under one limit. No two charges of a batch have the same key hash.
#[derive(Clone, Debug)]
pub struct Charge<'p> {
    /// Which limit of the plan this is for. A limit has several charges, one after the other, when a field of its
    /// key was sent several times.
    pub limit: u16,
    pub key: KeyHash,
    pub rule: &'p Rule,
    pub count: Count,
    pub force: Force,
    pub on_failure: OnFailure,
}

/// Whether a charge can deny a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Force {
    Binding,
    /// Decided and charged as if its limit stood alone.
    Shadow,
}

/// A store's answer to one charge, in the order of the batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Why not: how long until this key has room. `None`: it has.
    pub retry_after: Option<Duration>,
    /// Where the key stands after the decision, one for each rate; empty for `concurrent`.
    pub standings: Standings,
}

impl Charge<'_> {
    /// Whether this and the other are charged together or not at all, attempts aside.
    pub fn passes_with(&self, other: &Charge<'_>) -> bool {
        self.force == other.force && (self.force == Force::Binding || self.limit == other.limit)
    }

    /// Whether it is charged though the request is denied. What was denied is never in flight.
    pub fn is_attempt(&self) -> bool {
        self.count == Count::Attempts && !self.is_slot()
    }

    /// Whether what is charged is a slot in flight.
    pub fn is_slot(&self) -> bool {
        matches!(self.rule, Rule::Concurrent(_))
    }
}

impl Verdict {
    pub fn passes(&self) -> bool {
        self.retry_after.is_none()
    }
}

/// A slot in flight that a request holds, to be given back exactly once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Reservation {
    pub key: KeyHash,
}
