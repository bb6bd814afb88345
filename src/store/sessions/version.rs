//! Versions of the sessions in Redis.

/// Which changes of the sessions in Redis are known: a random number drawn when the hash was created, how many changes
/// there were since then, and the stamp of the latest change or use.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::store) struct SessionVersion {
    pub(super) begun: u64,
    pub(super) changes: u64,
    pub(super) stamp: u64,
}

impl SessionVersion {
    /// Reads three words.
    pub(in crate::store) fn read<'w>(mut words: impl Iterator<Item = &'w str>) -> Option<Self> {
        let begun = u64::from_str_radix(words.next()?, 16).ok()?;
        let (changes, stamp) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Self { begun, changes, stamp })
    }

    /// Whether this version is `before` or a later one of the same hash, so that Redis has lost nothing between the
    /// two.
    pub(in crate::store) fn follows(self, before: Self) -> bool {
        self.begun == before.begun && self.changes >= before.changes
    }

    /// The moment of the latest change or use, as later stamps compare with it.
    pub(in crate::store) fn stamp(self) -> u64 {
        self.stamp
    }
}
