//! Asks the process that has taken over, when the counts have moved there.

use super::store::MemoryStore;
use crate::decision::Batch;
use crate::decision::OwnedBatch;
use crate::decision::Settlement;
use crate::decision::Verdict;
use crate::key::KeyHash;
use crate::store::StoreError;
use crate::store::handover::message::HandoverReply;
use crate::store::handover::message::HandoverRequest;
use crate::store::handover::message::OwnedSettlement;
use crate::store::handover::message::OwnedVerdict;

impl MemoryStore {
    pub(super) async fn decide_at_successor(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, StoreError> {
        loop {
            if let Some(successor) = self.handover.successor().await {
                match successor.decide(OwnedBatch::of(batch)).await {
                    Err(_) if successor.has_failed() => continue,
                    answer => return self.verdicts(batch, answer?),
                }
            }
            if let Ok(verdicts) = self.collect_decided(batch) {
                return Ok(verdicts);
            }
        }
    }

    pub(super) async fn look_at_successor(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, StoreError> {
        loop {
            if let Some(successor) = self.handover.successor().await {
                match successor.ask(HandoverRequest::Look(OwnedBatch::of(batch))).await {
                    Err(_) if successor.has_failed() => continue,
                    answer => return self.verdicts(batch, answer?),
                }
            }
            if let Ok(verdicts) = self.try_look(batch) {
                return Ok(verdicts);
            }
        }
    }

    pub(super) async fn settle_at_successor(&self, mut settlements: &[Settlement<'_>]) -> Result<(), StoreError> {
        loop {
            if let Some(successor) = self.handover.successor().await {
                let owned = settlements.iter().map(OwnedSettlement::of).collect();
                match successor.ask(HandoverRequest::Settle(owned)).await {
                    Err(_) if successor.has_failed() => continue,
                    answer => return answer.map(drop),
                }
            }
            settlements = &settlements[self.settle_here(settlements)..];
            if settlements.is_empty() {
                return Ok(());
            }
        }
    }

    /// Whether a reservation of this key waits for its outcome, in the process that has the counts. `false` if that
    /// process does not answer.
    pub(in crate::store) async fn is_unsettled(&self, key: KeyHash) -> bool {
        if self.handover.here().is_err()
            && let Some(successor) = self.handover.successor().await
        {
            return matches!(
                successor.ask(HandoverRequest::IsUnsettled(key)).await,
                Ok(HandoverReply::Unsettled(true))
            );
        }
        self.unsettled.any(key)
    }

    /// Gives the verdicts reservations of this process as well, because its requests wait for their outcome.
    fn verdicts(&self, batch: &Batch<'_>, answer: HandoverReply) -> Result<Vec<Verdict>, StoreError> {
        let HandoverReply::Verdicts(verdicts) = answer else { return Err(StoreError::SuccessorGone) };
        let verdict = |(key, verdict): (KeyHash, OwnedVerdict)| {
            verdict.verdict(|resets| self.unsettled.watch(key).with_resets(resets).reserve())
        };
        Ok(batch.charges.iter().map(|charge| charge.key).zip(verdicts).map(verdict).collect())
    }
}
