//! What every store does.

use std::time::Duration;

use crate::decision::Batch;
use crate::decision::Settlement;
use crate::decision::Verdict;
use crate::key::KeyHash;

/// Keeps counts.
pub trait Store: Send + Sync {
    /// Decides a whole batch in one step: it is charged to every limit, or to none.
    ///
    /// Returns the verdicts in the order of the batch.
    fn decide(&self, batch: &Batch<'_>) -> impl Future<Output = Result<Vec<Verdict>, StoreError>> + Send;

    /// Returns the verdicts that `decide` would return now, and charges nothing, not even attempts.
    fn look(&self, batch: &Batch<'_>) -> impl Future<Output = Result<Vec<Verdict>, StoreError>> + Send;

    /// Settles requests that have passed, in this order.
    fn settle(&self, settlements: &[Settlement<'_>]) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Resets what was counted under these keys.
    fn reset(&self, keys: &[KeyHash]) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// Why a store returned no verdicts.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum StoreError {
    /// Redis does not answer, and a limit denies during an outage.
    #[error("redis does not answer")]
    Outage,
    /// This gateway is too busy to ask Redis, which may well answer.
    #[error("the gateway is too busy to ask redis")]
    Overload,
    /// Another process had taken over the counts, and is gone.
    #[error("the process that has taken over is gone")]
    SuccessorGone,
}

/// Observes the calls of a shared store, for metrics.
pub trait Observer: Send + Sync + std::fmt::Debug {
    /// Redis answered a decision after this time.
    fn round_trip(&self, span: Duration);

    /// Redis did not answer a decision, or is known to be down and was not asked; `cause` is a label.
    fn failed(&self, cause: &'static str);

    /// A server was up until now, and is down.
    fn went_down(&self);

    /// A request was refused because this gateway is too busy to ask.
    fn overloaded(&self);

    /// A decision was paid by leases, without a call.
    fn leased(&self) {}
}
