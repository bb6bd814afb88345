//! What happens later in a simulation.

use std::cmp::Ordering;
use std::time::Duration;

use smallvec::SmallVec;

use crate::clock::Timestamp;
use crate::decision::PendingOutcome;
use crate::gateway::decide::suspected_bans::SuspectedBan;
use crate::key::KeyHash;
use crate::outcome::Outcome;

/// An event of a simulation. In a heap the earliest comes first; of the same moment, the one that was put in first.
#[derive(Debug)]
pub(super) struct Due {
    pub(super) at: Timestamp,
    pub(super) number: u64,
    pub(super) event: DueEvent,
}

#[derive(Debug)]
pub(super) enum DueEvent {
    /// A request ends. `outcome` is `None` where it is unknown.
    Answer { pending: Option<Box<PendingOutcome>>, outcome: Option<Outcome>, slots: SmallVec<[KeyHash; 2]> },
    /// Looks whether a limit was really reached.
    CheckBan { suspected: Box<SuspectedBan>, pause: Duration, waited: Duration },
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Due {}
