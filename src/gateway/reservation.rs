//! The reservation of a request in the store. It is settled exactly once, however the request ends.

use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use smallvec::SmallVec;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::snapshot::Snapshot;
use crate::record::ObservedOutcome;
use crate::rules::decision::known_client::DeviceEnrollment;
use crate::rules::decision::{GainedSessions, PendingOutcome, PendingSignIn, Settlement, SignIn, SuccessOwner};
use crate::rules::key::KeyHash;
use crate::rules::outcome::{Outcome, OutcomeRule};
use crate::store::{AnyStore, Store};
use crate::wire::head::Fields;
use crate::words::clock::Timestamp;
use crate::words::pending_reservations::ToldLater;
use crate::words::pool::{Pooled, pool_of};

/// Everything that the store has reserved for one request, and what its answer meant. It is settled exactly once, at the
/// latest when it is dropped.
#[derive(Debug, Default)]
pub struct Reservation {
    /// `None` when nothing is reserved, as for most requests.
    reserved: Option<Pooled<Reserved>>,
    /// The outcome, once it was observed.
    outcome: Option<ObservedOutcome>,
    /// The device to enroll with the answer, if it is a success.
    enrollment: Option<Box<DeviceEnrollment>>,
}

#[derive(Debug)]
struct Reserved {
    store: Arc<AnyStore>,
    /// The concurrency slots that the request holds.
    slots: SmallVec<[KeyHash; 2]>,
    pending: Option<AwaitedOutcome>,
    /// Whether the request was sent to the application.
    is_sent: bool,
}

pool_of!(Reserved);

/// The settlements that wait for the outcome, and the policy that they belong to.
#[derive(Debug)]
pub struct AwaitedOutcome {
    pub live: Arc<Snapshot>,
    pub pending: Box<PendingOutcome>,
}

/// The result of a settlement.
#[derive(Debug)]
struct SettledRequest {
    settlement: SettlementTask,
    /// The outcome; `None`: it cannot be known, or the settlement will decide it.
    outcome: Option<Outcome>,
    /// The device that a success enrolls.
    enrollment: Option<Box<DeviceEnrollment>>,
}

/// The meaning of an answer.
#[derive(Debug, Default)]
pub struct Answered {
    /// By the rule of its route; `None`: it cannot be decided.
    pub outcome: Option<Outcome>,
    /// The sessions that it gives its client.
    pub gained: GainedSessions,
}

impl Reservation {
    pub fn of(store: &Arc<AnyStore>, slots: SmallVec<[KeyHash; 2]>, pending: Option<AwaitedOutcome>) -> Self {
        if slots.is_empty() && pending.is_none() {
            return Self::default();
        }
        let reserved = Reserved { store: Arc::clone(store), slots, pending, is_sent: false };
        Self { reserved: Some(Pooled::new(reserved)), outcome: None, enrollment: None }
    }

    /// The request goes to the application. Its outcome is unknown until there is an answer.
    pub fn mark_sent(&mut self) {
        if let Some(reserved) = &mut self.reserved {
            reserved.is_sent = true;
        }
    }

    /// The rule that decides the outcome; `None` when nothing depends on it.
    pub fn outcome_rule(&self) -> Option<&Arc<OutcomeRule>> {
        let AwaitedOutcome { live, pending } = self.reserved.as_ref()?.pending.as_ref()?;
        live.policy.routes.get(pending.route).outcome.as_ref()
    }

    /// Whether the client is a known one of the name in the request, as far as that was asked, and as the store tells after a
    /// success. `None`: nothing waits for the outcome.
    pub fn is_known_client(&self) -> Option<(bool, ToldLater)> {
        let pending = &self.reserved.as_ref()?.pending.as_ref()?.pending;
        Some((pending.is_known_client, pending.was_known.clone()))
    }

    /// Whether concurrency slots are given back at the end of the request.
    pub fn holds_slots(&self) -> bool {
        self.reserved.as_ref().is_some_and(|reserved| !reserved.slots.is_empty())
    }

    /// Whether the client gets the head of the answer only when its outcome is known: a success sets a device cookie, or
    /// gives a session that the store has to learn before.
    pub fn holds_head(&self) -> bool {
        self.may_enroll() || self.sign_in().is_some()
    }

    /// Whether a success enrolls a device.
    fn may_enroll(&self) -> bool {
        let awaited = self.reserved.as_ref().and_then(|reserved| reserved.pending.as_ref());
        awaited.is_some_and(|awaited| awaited.pending.enrollment.is_some())
    }

    /// Where the body of a success may have tokens, besides what the outcome needs of it.
    pub fn awaited_tokens(&self) -> Option<&Arc<[Box<str>]>> {
        let (live, sign_in) = self.sign_in()?;
        sign_in.tokens(&live.policy)
    }

    /// The sessions that the head of the answer gives its client. `now` is its moment by the wall clock.
    pub fn gained(&self, answer: &Fields, now: Timestamp) -> GainedSessions {
        let gained = |(live, sign_in): (&Arc<Snapshot>, &PendingSignIn)| {
            Some(sign_in.gained(&live.policy, answer, now, &self.reserved.as_ref()?.store.hasher()))
        };
        self.sign_in().and_then(gained).unwrap_or_default()
    }

    /// Adds the tokens in the body of the answer.
    pub fn add_tokens(&self, gained: &mut GainedSessions, tokens: &[Box<str>]) {
        if let (Some((live, sign_in)), Some(reserved)) = (self.sign_in(), &self.reserved) {
            sign_in.add_tokens(gained, &live.policy, tokens, &reserved.store.hasher());
        }
    }

    fn sign_in(&self) -> Option<(&Arc<Snapshot>, &PendingSignIn)> {
        let AwaitedOutcome { live, pending } = self.reserved.as_ref()?.pending.as_ref()?;
        Some((live, pending.sign_in.as_deref()?))
    }

    /// Settles the request in the store by what its answer says, once; nothing happens where nothing depends on the outcome.
    /// Without an outcome the request reached the application, but its outcome is unknown. `is_through`: the request has
    /// ended, so its slots are given back. Where the settlement is to tell the outcome, that goes to
    /// [`set_outcome`](Self::set_outcome).
    pub fn settle(&mut self, answered: Answered, is_through: bool) -> SettlementTask {
        let settled = self.reserved.as_mut().and_then(|reserved| reserved.settle(answered, is_through));
        let Some(SettledRequest { settlement, outcome, enrollment }) = settled else { return SettlementTask::Done };
        self.outcome = Some(outcome.map_or(ObservedOutcome::Unknown, ObservedOutcome::Known));
        self.enrollment = enrollment;
        settlement
    }

    /// The outcome of the answer, once the store has said which account it belongs to.
    pub fn set_outcome(&mut self, outcome: Outcome) {
        self.outcome = Some(ObservedOutcome::Known(outcome));
    }

    /// Takes the device that a success enrolls. `None` on a second call.
    pub fn take_enrollment(&mut self) -> Option<Box<DeviceEnrollment>> {
        let is_success = self.outcome == Some(ObservedOutcome::Known(Outcome::Success));
        self.enrollment.take().filter(|_| is_success)
    }

    /// The request has ended. If it was not settled yet, it is settled now: if the request was sent, its outcome is unknown,
    /// else it is neither success nor failure. Returns the outcome; `None`: the answer was never looked at, or nothing depends
    /// on it.
    pub fn end(&mut self) -> Option<ObservedOutcome> {
        let reserved = self.reserved.as_mut()?;
        if reserved.is_sent {
            if reserved.settle(Answered::default(), true).is_some() {
                self.outcome = Some(ObservedOutcome::Unknown);
            }
        } else {
            reserved.settle(Answered { outcome: Some(Outcome::Neither), ..Answered::default() }, true);
        }
        self.outcome
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.end();
        let Some(reserved) = self.reserved.take() else { return };
        let Reserved { store, slots, .. } = &*reserved;
        let settlements: SmallVec<[_; 2]> = slots.iter().copied().map(Settlement::Release).collect();
        let settled = store.settle_here(&settlements);
        if settled < settlements.len() {
            run_to_end(store, |store| async move {
                // If it is not known whether Redis got this, the slots come back when their lease ends.
                let _ = store.settle(&settlements[settled..]).await;
            });
        }
    }
}

impl Reserved {
    fn settle(&mut self, answered: Answered, is_through: bool) -> Option<SettledRequest> {
        let AwaitedOutcome { live, mut pending } = self.pending.take()?;
        let enrollment = pending.enrollment.take().map(Box::new);
        let sign_in = pending.sign_in.take().filter(|_| answered.outcome == Some(Outcome::Success));
        let owner = sign_in.map(|sign_in| sign_in.owner(&live.policy, answered.gained, &self.store.hasher()));
        let outcome = match owner {
            None | Some(SuccessOwner::Own) => answered.outcome,
            Some(SuccessOwner::Other) => Some(Outcome::Failure),
            Some(SuccessOwner::Learning(sign_in)) => {
                return Some(self.sign_in(AwaitedOutcome { live, pending }, sign_in, enrollment, is_through));
            }
        };
        let mut settlements = pending.settlements(&live.policy, outcome);
        if settlements.is_empty() {
            return Some(SettledRequest { settlement: SettlementTask::Done, outcome, enrollment });
        }
        let gives_back =
            settlements.iter().any(|it| !matches!(it, Settlement::Keep { .. } | Settlement::Charge { .. }));
        // In the same call, if the outcome gives anything back.
        let slots = if is_through && gives_back { mem::take(&mut self.slots) } else { SmallVec::new() };
        settlements.extend(slots.iter().copied().map(Settlement::Release));
        let settled = self.store.settle_here(&settlements);
        if settled == settlements.len() {
            return Some(SettledRequest { settlement: SettlementTask::Done, outcome, enrollment });
        }
        drop(settlements);
        let write = run_to_end(&self.store, |store| async move {
            // If it is not known whether Redis got this, the charges stay, to the disadvantage of the client.
            let mut settlements = pending.settlements(&live.policy, outcome);
            settlements.extend(slots.into_iter().map(Settlement::Release));
            let _ = store.settle(&settlements[settled..]).await;
        });
        let settlement = match write {
            Started::Running(write) if gives_back => SettlementTask::Writing(write),
            Started::Running(_) | Started::Ended(()) | Started::Lost => SettlementTask::Done,
        };
        Some(SettledRequest { settlement, outcome, enrollment })
    }

    /// Has the store learn the sessions of a success. The store's answer says which account the carried sessions belong
    /// to, and the request is settled with that.
    fn sign_in(
        &mut self,
        awaited: AwaitedOutcome,
        sign_in: SignIn,
        enrollment: Option<Box<DeviceEnrollment>>,
        is_through: bool,
    ) -> SettledRequest {
        let slots = if is_through { mem::take(&mut self.slots) } else { SmallVec::new() };
        let signing_in = run_to_end(&self.store, |store| async move {
            let AwaitedOutcome { live, pending } = awaited;
            let outcome = if store.sign_in(sign_in).await { Outcome::Success } else { Outcome::Failure };
            let mut settlements = pending.settlements(&live.policy, Some(outcome));
            settlements.extend(slots.into_iter().map(Settlement::Release));
            let settled = store.settle_here(&settlements);
            if settled < settlements.len() {
                // If it is not known whether Redis got this, the charges stay, to the disadvantage of the client.
                let _ = store.settle(&settlements[settled..]).await;
            }
            outcome
        });
        match signing_in {
            Started::Ended(outcome) => {
                SettledRequest { settlement: SettlementTask::Done, outcome: Some(outcome), enrollment }
            }
            Started::Running(task) => {
                SettledRequest { settlement: SettlementTask::SigningIn(task), outcome: None, enrollment }
            }
            Started::Lost => SettledRequest { settlement: SettlementTask::Done, outcome: None, enrollment },
        }
    }
}

/// Waits until the store has recorded what frees a client, so that the client is free when it has its answer, and what it
/// learns of sessions. Dropping it does not stop the work.
#[derive(Debug, Default)]
pub enum SettlementTask {
    #[default]
    Done,
    Writing(JoinHandle<()>),
    /// It ends with what the answer means.
    SigningIn(JoinHandle<Outcome>),
}

impl SettlementTask {
    /// Whether it is to tell what the answer means.
    pub fn is_signing_in(&self) -> bool {
        matches!(self, Self::SigningIn(_))
    }
}

/// The output is what the answer means, where that was not known before.
impl Future for SettlementTask {
    type Output = Option<Outcome>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Outcome>> {
        let outcome = match &mut *self {
            Self::Done => None,
            Self::Writing(write) => {
                drop(ready!(Pin::new(write).poll(cx)));
                None
            }
            Self::SigningIn(task) => ready!(Pin::new(task).poll(cx)).ok(),
        };
        *self = Self::Done;
        Poll::Ready(outcome)
    }
}

/// Work for a store that has ended, runs in a task, or is lost.
enum Started<T> {
    Ended(T),
    Running(JoinHandle<T>),
    /// This thread runs no tasks.
    Lost,
}

/// Runs work for a remote store in a task of its own, so that it completes even when the request ends.
fn run_to_end<F>(store: &Arc<AnyStore>, work: impl FnOnce(Arc<AnyStore>) -> F) -> Started<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let mut work = Box::pin(work(Arc::clone(store)));
    if let Poll::Ready(output) = work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        return Started::Ended(output);
    }
    match Handle::try_current() {
        // The worker waits for these tasks before it ends.
        Ok(runtime) => Started::Running(store.tasks().spawn_on(work, &runtime)),
        Err(_) => Started::Lost,
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use smallvec::smallvec;

    use super::*;
    use crate::rules::decision::{Batch, Charge};
    use crate::rules::limit::Rule;
    use crate::store::memory::MemorySettings;
    use crate::store::{MemoryStore, MovableStore};
    use crate::words::clock::{Clock, ManualClock};

    const KEY: KeyHash = KeyHash(7);

    async fn has_room(store: &AnyStore) -> bool {
        let rule = Rule::Concurrent(NonZeroU32::MIN);
        let charge = Charge::new(0, KEY, &rule);
        let verdicts =
            store.decide(&Batch { charges: smallvec![charge], ..Batch::default() }).await.expect("memory answers");
        verdicts[0].passes()
    }

    #[tokio::test]
    async fn a_slot_is_given_back_when_its_request_is_dropped() {
        let clock = Clock::Manual(ManualClock::default());
        let store = Arc::new(AnyStore::Memory(Arc::new(MovableStore::from(MemoryStore::new(
            &MemorySettings { max_keys: 100, max_sessions: 1000, snapshot: None },
            clock,
        )))));
        assert!(has_room(&store).await);
        let reserved = Reservation::of(&store, smallvec![KEY], None);
        assert!(!has_room(&store).await);
        drop(reserved);
        assert!(has_room(&store).await);
        assert!(!has_room(&store).await);
    }
}
