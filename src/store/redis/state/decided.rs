//! What Redis has decided about a batch.

use crate::decision::Batch;
use crate::decision::Verdict;
use crate::key::KeyHash;

/// What Redis has decided about a batch: a verdict for each charge whose server answers.
#[derive(Clone, Debug, Default)]
pub struct RedisDecision {
    /// In the order of the batch; `None` if the server of that key does not answer.
    pub verdicts: Vec<Option<Verdict>>,
    /// The number under which slots were taken.
    pub(in crate::store::redis) holder: u32,
    /// This gateway was too busy to ask for a binding charge, so that nobody knows whether the request may pass.
    pub is_overload: bool,
}

impl RedisDecision {
    /// The keys of the slots that were taken.
    pub(in crate::store::redis) fn slots(&self, batch: &Batch<'_>) -> impl Iterator<Item = KeyHash> {
        let slots = batch.charges.iter().enumerate().filter(|(_, charge)| charge.is_slot());
        slots.filter(|(place, _)| self.is_charged(*place)).map(|(_, charge)| charge.key)
    }

    /// Whether Redis has made the charge at this place of the batch.
    pub fn is_charged(&self, place: usize) -> bool {
        is_charged(&self.verdicts, place)
    }
}

/// Whether the charge at this place is known to have been made.
pub(in crate::store::redis) fn is_charged(verdicts: &[Option<Verdict>], place: usize) -> bool {
    verdicts[place].as_ref().is_some_and(|verdict| verdict.charged.is_some())
}
