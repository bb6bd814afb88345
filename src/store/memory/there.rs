//! What is asked of the counts when they have moved: the process that has taken over is asked instead.

use super::MemoryStore;
use crate::decision::Batch;
use crate::decision::OwnedBatch;
use crate::decision::Settlement;
use crate::decision::Verdict;
use crate::key::KeyHash;
use crate::store::StoreError;
use crate::store::handover::message::Answer;
use crate::store::handover::message::OwnedSettlement;
use crate::store::handover::message::OwnedVerdict;
use crate::store::handover::message::Question;

impl MemoryStore {
    pub(super) async fn decide_there(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, StoreError> {
        loop {
            if let Some(relay) = self.handover.successor().await {
                return self.verdicts(batch, relay.decide(OwnedBatch::of(batch)).await?);
            }
            if let Ok(verdicts) = self.try_decide(batch) {
                return Ok(verdicts);
            }
        }
    }

    pub(super) async fn look_there(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, StoreError> {
        loop {
            if let Some(relay) = self.handover.successor().await {
                return self.verdicts(batch, relay.ask(Question::Look(OwnedBatch::of(batch))).await?);
            }
            if let Ok(verdicts) = self.try_look(batch) {
                return Ok(verdicts);
            }
        }
    }

    pub(super) async fn settle_there(&self, mut settlements: &[Settlement<'_>]) -> Result<(), StoreError> {
        loop {
            if let Some(relay) = self.handover.successor().await {
                let owned = settlements.iter().map(OwnedSettlement::of).collect();
                return relay.ask(Question::Settle(owned)).await.map(drop);
            }
            settlements = &settlements[self.settle_here(settlements)..];
            if settlements.is_empty() {
                return Ok(());
            }
        }
    }

    /// Whether a reservation of this key waits for its outcome, in whichever process. In doubt none does.
    pub(in crate::store) async fn is_unsettled(&self, key: KeyHash) -> bool {
        if self.handover.here().is_err()
            && let Some(relay) = self.handover.successor().await
        {
            return matches!(relay.ask(Question::IsUnsettled(key)).await, Ok(Answer::Unsettled(true)));
        }
        self.unsettled.any(key)
    }

    /// The tickets are of this process too: they say that its requests wait.
    fn verdicts(&self, batch: &Batch<'_>, answer: Answer) -> Result<Vec<Verdict>, StoreError> {
        let Answer::Verdicts(verdicts) = answer else { return Err(StoreError::SuccessorGone) };
        let verdict = |(key, verdict): (KeyHash, OwnedVerdict)| {
            verdict.verdict(|resets| self.unsettled.watch(key).after(resets).reserve())
        };
        Ok(batch.charges.iter().map(|charge| charge.key).zip(verdicts).map(verdict).collect())
    }
}
