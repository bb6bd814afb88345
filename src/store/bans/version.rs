//! Versions of the bans in Redis, and changes between them.

use super::ban::BanId;
use super::ban::BanRecord;

/// Which changes of the bans in Redis are known: a random number drawn when the hash was created, and how many changes
/// there were since then.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(in crate::store) struct BanVersion {
    pub(super) begun: u64,
    pub(super) changes: u64,
}

/// One change of the bans in Redis.
#[derive(Clone, Debug)]
pub(in crate::store) enum BanChange {
    Ban(Box<BanRecord>),
    Lift(BanId),
}

impl From<BanRecord> for BanChange {
    fn from(record: BanRecord) -> Self {
        Self::Ban(Box::new(record))
    }
}

impl BanVersion {
    /// Reads two words; `None`: there are no bans.
    pub(in crate::store) fn read(words: &[String]) -> Option<Self> {
        let [begun, changes, ..] = words else { return None };
        Some(Self { begun: u64::from_str_radix(begun, 16).ok()?, changes: changes.parse().ok()? })
    }

    /// Whether this version is `before` or a later one of the same hash, so that Redis has lost nothing between the
    /// two.
    pub(in crate::store) fn follows(self, before: Self) -> bool {
        self.begun == before.begun && self.changes >= before.changes
    }

    /// The version after one more change.
    pub(super) fn next(self) -> Self {
        Self { changes: self.changes.wrapping_add(1), ..self }
    }
}
