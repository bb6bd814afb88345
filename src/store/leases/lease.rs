//! Units that were leased in one call.

use std::time::Duration;

use super::request::EndedLease;
use crate::clock::Timestamp;
use crate::limit::Standing;
use crate::limit::Standings;

/// How long Redis lets a lease last.
pub const LEASE_SPAN: Duration = Duration::from_secs(1);

/// How much sooner its holder stops: by its clock, and counted from when it asked. The clocks of holder and server may differ in
/// pace by a twentieth.
pub(super) const LEASE_MARGIN: Duration = Duration::from_millis(50);

/// Units that were leased in one call.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    /// Drawn at random, not zero.
    pub(super) id: u64,
    pub(super) units: u32,
    pub(super) spent: u32,
    /// When the call was sent that asked for it.
    pub(super) asked: Timestamp,
    /// From then on nothing is spent.
    pub(super) ends: Timestamp,
    /// The number under which slots in flight are held.
    pub(super) holder: u32,
    /// Where the key stood in Redis after the call, all that is leased left out.
    pub(super) standings: Standings,
}

/// Units of a lease that a request has spent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SpentUnits {
    pub(super) lease: u64,
    pub(super) holder: u32,
    pub(super) units: u32,
    /// Where the key stands after that, as far as is known here.
    pub(super) standings: Standings,
}

impl Lease {
    pub(super) fn has_room(&self, cost: u32, now: Timestamp) -> bool {
        now < self.ends && self.unspent() >= cost
    }

    pub(super) fn unspent(&self) -> u32 {
        self.units - self.spent
    }

    pub(super) fn ended(&self) -> EndedLease {
        EndedLease { id: self.id, spent: self.spent, unspent: self.unspent() }
    }

    /// Where the key stands as far as is known here: what other gateways have done since the lease began is not.
    pub(super) fn standings(&self, now: Timestamp) -> Standings {
        let age = now.since(self.asked);
        let standing = |known: &Standing| Standing {
            remaining: known.remaining + u64::from(self.unspent()),
            reset: known.reset.saturating_sub(age).max(SOONEST),
        };
        self.standings.iter().map(standing).collect()
    }
}

/// Something is used, so a reset is never now.
const SOONEST: Duration = Duration::from_micros(1);
