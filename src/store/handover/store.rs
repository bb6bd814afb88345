//! The memory store as requests ask it: its counts are in this process, or in its successor once they have moved there.

use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use smallvec::SmallVec;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use super::client::SuccessorClient;
use super::message::{HandoverReply, HandoverRequest};
use super::session::SessionHandle;
use crate::rules::decision::{
    Batch, OwnedBatch, OwnedSettlement, OwnedVerdict, SessionChange, Settlement, SignIn, Verdict,
};
use crate::rules::key::KeyHash;
use crate::rules::limit::Ladder;
use crate::store::bans::ban::BanRecord;
use crate::store::bans::codec::SavedBan;
use crate::store::bans::{Ban, BanId, BanSubject, BanTableFull};
use crate::store::memory::{CountsMoved, MemoryStore};
use crate::store::{Store, StoreError};
use crate::words::clock::Timestamp;

/// A store in memory whose counts can move to the process that takes over. What the counts are asked for here is asked there
/// from then on.
#[derive(Debug)]
pub struct MovableStore {
    memory: Arc<MemoryStore>,
    handover: Handover,
}

/// Where the counts of a process are: here, with its successor, or on their way.
#[derive(Debug)]
struct Handover {
    phase: watch::Sender<Phase>,
    /// The sessions of predecessors that ask this process.
    sessions: Mutex<Vec<SessionHandle>>,
    /// Tasks that tell the successor something and that no request waits for.
    tasks: TaskTracker,
}

#[derive(Clone, Debug)]
enum Phase {
    Here,
    /// It is not decided yet which process has the counts.
    Moving,
    AtSuccessor(Arc<SuccessorClient>),
}

impl From<MemoryStore> for MovableStore {
    fn from(memory: MemoryStore) -> Self {
        Self { memory: Arc::new(memory), handover: Handover::default() }
    }
}

impl Deref for MovableStore {
    type Target = MemoryStore;

    fn deref(&self) -> &MemoryStore {
        &self.memory
    }
}

impl Store for MovableStore {
    async fn decide(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, StoreError> {
        match self.memory.collect_decided(batch) {
            Ok(verdicts) => Ok(verdicts),
            // Boxed, so that the future of a decision in this process stays small.
            Err(CountsMoved) => Box::pin(self.decide_at_successor(batch)).await,
        }
    }

    async fn look(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, StoreError> {
        match self.memory.try_look(batch) {
            Ok(verdicts) => Ok(verdicts),
            Err(CountsMoved) => Box::pin(self.look_at_successor(batch)).await,
        }
    }

    async fn reset(&self, keys: &[KeyHash]) -> Result<(), StoreError> {
        let resets: SmallVec<[_; 4]> = keys.iter().map(|key| Settlement::Reset(*key)).collect();
        self.settle(&resets).await
    }

    async fn settle(&self, settlements: &[Settlement<'_>]) -> Result<(), StoreError> {
        match settlements.get(self.memory.settle_here(settlements)..) {
            None | Some([]) => Ok(()),
            Some(rest) => Box::pin(self.settle_at_successor(rest)).await,
        }
    }
}

impl MovableStore {
    async fn decide_at_successor(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, StoreError> {
        loop {
            if let Some(successor) = self.successor().await {
                match successor.decide(OwnedBatch::of(batch)).await {
                    Err(_) if successor.has_failed() => continue,
                    answer => return self.verdicts(batch, answer?),
                }
            }
            if let Ok(verdicts) = self.memory.collect_decided(batch) {
                return Ok(verdicts);
            }
        }
    }

    async fn look_at_successor(&self, batch: &Batch<'_>) -> Result<Vec<Verdict>, StoreError> {
        loop {
            if let Some(successor) = self.successor().await {
                match successor.ask(HandoverRequest::Look(Box::new(OwnedBatch::of(batch)))).await {
                    Err(_) if successor.has_failed() => continue,
                    answer => return self.verdicts(batch, answer?),
                }
            }
            if let Ok(verdicts) = self.memory.try_look(batch) {
                return Ok(verdicts);
            }
        }
    }

    async fn settle_at_successor(&self, mut settlements: &[Settlement<'_>]) -> Result<(), StoreError> {
        loop {
            if let Some(successor) = self.successor().await {
                let owned = settlements.iter().map(OwnedSettlement::of).collect();
                match successor.ask(HandoverRequest::Settle(owned)).await {
                    Err(_) if successor.has_failed() => continue,
                    answer => return answer.map(drop),
                }
            }
            settlements = &settlements[self.memory.settle_here(settlements)..];
            if settlements.is_empty() {
                return Ok(());
            }
        }
    }

    /// Whether a reservation of this key waits for its outcome, in the process that has the counts. `false` if that
    /// process does not answer.
    pub(in crate::store) async fn is_unsettled(&self, key: KeyHash) -> bool {
        if self.memory.here().is_err()
            && let Some(successor) = self.successor().await
        {
            return matches!(
                successor.ask(HandoverRequest::IsUnsettled(key)).await,
                Ok(HandoverReply::Unsettled(true))
            );
        }
        self.memory.unsettled().any(key)
    }

    /// Gives the verdicts reservations of this process as well, because its requests wait for their outcome.
    fn verdicts(&self, batch: &Batch<'_>, answer: HandoverReply) -> Result<Vec<Verdict>, StoreError> {
        let HandoverReply::Verdicts(verdicts) = answer else { return Err(StoreError::SuccessorGone) };
        let verdict = |(key, verdict): (KeyHash, OwnedVerdict)| {
            verdict.with_reservation(|resets| self.memory.unsettled().watch(key).with_resets(*resets).reserve())
        };
        Ok(batch.charges.iter().map(|charge| charge.key).zip(verdicts).map(verdict).collect())
    }
}

// Bans that begin and end in this process, or in the process that has taken over.

impl MovableStore {
    /// Returns the ban that begins now, or the one that lasts already. If the process that has taken over is gone, the
    /// ban holds in this process.
    pub(in crate::store) async fn ban_by_limit(&self, subject: BanSubject, ladder: &Ladder, reason: &Arc<str>) -> Ban {
        loop {
            if let Ok(record) = self.memory.try_ban_by_limit(&subject, ladder, reason) {
                return record.ban;
            }
            let Some(successor) = self.successor().await else { continue };
            let (saved, client) = (saved(&subject, reason), client(&subject));
            let answer = successor.ask(HandoverRequest::BanByLimit { saved, client, ladder: ladder.clone() }).await;
            return match self.take_over_ban(answer, &subject) {
                Some(record) => record.ban,
                None => self.memory.bans().ban_by_limit(subject, ladder, reason).0.ban,
            };
        }
    }

    pub(in crate::store) async fn ban_by_operator(
        &self,
        subject: BanSubject,
        span: Duration,
        reason: Arc<str>,
    ) -> Result<Ban, BanTableFull> {
        loop {
            if let Ok(banned) = self.memory.try_ban_by_operator(&subject, span, &reason) {
                return banned.map(|record| record.ban);
            }
            let Some(successor) = self.successor().await else { continue };
            let (saved, client) = (saved(&subject, &reason), client(&subject));
            let answer = successor.ask(HandoverRequest::BanByOperator { saved, client, span }).await;
            return self.take_over_ban(answer, &subject).map(|record| record.ban).ok_or(BanTableFull);
        }
    }

    /// Lifts a ban and returns it.
    pub(in crate::store) async fn lift(&self, id: BanId) -> Result<Option<Ban>, StoreError> {
        loop {
            if let Ok(lifted) = self.memory.try_lift(id) {
                return Ok(lifted);
            }
            let Some(successor) = self.successor().await else { continue };
            let HandoverReply::Ban(lifted) = successor.ask(HandoverRequest::Lift(id)).await? else { return Ok(None) };
            let known = self.memory.bans().lift(id);
            return Ok(known.or(lifted.and_then(|lifted| lifted.read()).map(|record| record.ban)));
        }
    }

    /// Takes over a ban that the other process began, with the subject of this process, which knows more about the key.
    fn take_over_ban(&self, answer: Result<HandoverReply, StoreError>, subject: &BanSubject) -> Option<BanRecord> {
        let Ok(HandoverReply::Ban(Some(saved))) = answer else { return None };
        let mut record = saved.read()?;
        record.ban.subject = subject.clone();
        self.memory.bans().insert(record.clone());
        Some(record)
    }
}

/// A subject and a reason in the form of a saved ban.
fn saved(subject: &BanSubject, reason: &Arc<str>) -> SavedBan {
    let (since, until) = (Timestamp::EPOCH, Timestamp::EPOCH);
    let (subject, reason) = (subject.clone(), Arc::clone(reason));
    let ban = Ban { id: subject.id(), subject, since, until, reason, by_operator: false };
    SavedBan::of(&BanRecord::new(ban, 0, Duration::ZERO))
}

/// The client whose request began the ban, which a saved ban does not have.
fn client(subject: &BanSubject) -> Option<IpAddr> {
    match subject {
        BanSubject::Key { client, .. } => *client,
        BanSubject::Address(_) => None,
    }
}

// Session changes, in this process or in the process that has taken over.

impl MovableStore {
    /// Whether the success is the account's own. If the process that has taken over is gone, what this process knows
    /// decides.
    pub(in crate::store) async fn sign_in(&self, sign_in: SignIn) -> bool {
        loop {
            if let Ok(is_own) = self.memory.try_sign_in(&sign_in) {
                return is_own;
            }
            let Some(successor) = self.successor().await else { continue };
            if successor.has_sessions() {
                let asked = HandoverRequest::SignIn(sign_in.clone());
                if let Ok(HandoverReply::SignedIn(false)) = Box::pin(successor.ask(asked)).await {
                    return false;
                }
            }
            // For the requests that this process still serves.
            return self.memory.sessions().sign_in(&sign_in, self.memory.now());
        }
    }

    /// Applies these changes. The task tells them to the process that has taken over.
    pub(in crate::store) fn change_sessions(&self, changes: Vec<SessionChange>) -> Option<JoinHandle<()>> {
        if self.memory.try_change_sessions(&changes).is_ok() {
            return None;
        }
        self.memory.apply(&changes);
        let successor = self.decided_successor();
        Some(self.tasks().spawn(async move {
            if let Some(successor) = successor.await.filter(|successor| successor.has_sessions()) {
                drop(successor.ask(HandoverRequest::ChangeSessions(changes)).await);
            }
        }))
    }
}

// Which process has the counts.

impl MovableStore {
    /// The counts of this process.
    pub fn memory(&self) -> &Arc<MemoryStore> {
        &self.memory
    }

    /// Stops counting in this process: callers find that the counts have moved.
    pub(super) fn freeze(&self) {
        self.begin_move();
        self.memory.set_keys_moved(true);
    }

    /// Counts in this process again: the counts have not moved after all.
    pub(super) fn thaw(&self) {
        self.memory.set_keys_moved(false);
        self.memory.set_moved(false);
        self.handover.phase.send_replace(Phase::Here);
    }

    /// The first step when the counts move.
    pub(super) fn begin_move(&self) {
        self.handover.phase.send_replace(Phase::Moving);
        self.memory.set_moved(true);
    }

    /// The counts have moved for good.
    pub(super) fn complete_move(&self, client: Arc<SuccessorClient>) {
        self.handover.phase.send_replace(Phase::AtSuccessor(client));
    }

    /// The sessions of predecessors that ask this process.
    pub(super) fn predecessors(&self) -> &Mutex<Vec<SessionHandle>> {
        &self.handover.sessions
    }

    /// Tasks that tell the successor something and that no request waits for.
    pub(in crate::store) fn tasks(&self) -> &TaskTracker {
        &self.handover.tasks
    }

    /// Waits until it is decided which process has the counts. `None`: this one.
    async fn successor(&self) -> Option<Arc<SuccessorClient>> {
        self.decided_successor().await
    }

    /// The same for a task, which outlives the caller.
    fn decided_successor(&self) -> impl Future<Output = Option<Arc<SuccessorClient>>> + Send + use<> {
        let mut phase = self.handover.phase.subscribe();
        async move {
            let known = phase.wait_for(|phase| !matches!(phase, Phase::Moving)).await;
            match &*known.ok()? {
                Phase::AtSuccessor(client) => Some(Arc::clone(client)),
                Phase::Here | Phase::Moving => None,
            }
        }
    }
}

impl Default for Handover {
    fn default() -> Self {
        Self { phase: watch::Sender::new(Phase::Here), sessions: Mutex::default(), tasks: TaskTracker::new() }
    }
}
