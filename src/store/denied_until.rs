//! What Redis has denied until a moment is denied here until then, without asking, and never longer.

use crate::clock::Timestamp;
use crate::decision::Batch;
use crate::decision::Verdict;
use crate::key::KeyHash;

/// Keys that Redis has said no to, and until when. Shared by all cores of a process; bounded.
#[derive(Debug)]
pub struct DeniedUntil {
    most: usize,
}

impl DeniedUntil {
    pub fn new(most: usize) -> Self {
        Self { most }
    }

    /// The answer to a batch that is denied by what is known here, where nothing would be charged for it.
    pub fn answer(&self, _batch: &Batch<'_>, _now: Timestamp) -> Option<Vec<Verdict>> {
        let _ = self.most;
        None
    }

    /// Which resets were heard of so far: asked for before Redis is asked, given back with its answer.
    pub fn epoch(&self) -> u64 {
        0
    }

    /// Notes what Redis answered to a batch that was sent at `sent`, or later. What was answered before a reset that
    /// was heard of since `epoch` is not believed.
    pub fn note(&self, _batch: &Batch<'_>, _verdicts: &[Verdict], _sent: Timestamp, _epoch: u64) {}

    /// A key was reset.
    pub fn forget(&self, _key: KeyHash) {}

    /// Resets may have been missed.
    pub fn forget_all(&self) {}
}
