//! Replies to a predecessor, and keeps its reservations while it lives.

use std::collections::HashMap;
use std::io;
use std::io::ErrorKind;
use std::os::unix::net;
use std::pin::pin;
use std::sync::Arc;

use smallvec::SmallVec;
use tokio::net::UnixStream;
use tokio::sync::oneshot;

use super::message::{HandoverReply, HandoverRequest, ReplyFrame, RequestFrame, UNREQUESTED};
use crate::rules::decision::batch::{Charged, OwnedCharged, OwnedReset};
use crate::rules::decision::{Batch, OwnedSettlement, OwnedVerdict, Settlement};
use crate::rules::key::KeyHash;
use crate::store::Store;
use crate::store::bans::codec::SavedBan;
use crate::store::handover::message;
use crate::store::handover::moving_keys::{ArrivingKeys, KeysPiece};
use crate::store::handover::store::MovableStore;
use crate::store::memory::MemoryStore;
use crate::words::pending_reservations::ReservationGuard;

/// At least this much is read at a time.
const READ: usize = 16 << 10;

/// No more requests are read from a predecessor that does not read its replies.
const MOST_UNSENT: usize = 1 << 20;

#[derive(Debug)]
struct Session {
    store: Arc<MovableStore>,
    stream: UnixStream,
    received: Vec<u8>,
    unsent: Vec<u8>,
    reservations: PredecessorReservations,
    bans_mark: u64,
    draining: Option<oneshot::Sender<()>>,
    /// Keys that have not arrived yet. No process takes over from this one meanwhile.
    arriving: Option<ArrivingKeys>,
}

impl PausedSession {
    /// Replies to the predecessor from now on, in a task on the runtime of the caller.
    pub(super) fn resume(self, store: &Arc<MovableStore>, arriving: Option<ArrivingKeys>) -> SessionHandle {
        let (handle, pause_request) = SessionHandle::new();
        let store = Arc::clone(store);
        tokio::spawn(async move {
            let Self { stream, received, unsent, reservations, bans_mark, draining } = self;
            match stream.set_nonblocking(true).and_then(|()| UnixStream::from_std(stream)) {
                Ok(stream) => {
                    let session =
                        Session { store, stream, received, unsent, reservations, bans_mark, draining, arriving };
                    session.serve(pause_request).await;
                }
                // The predecessor sees the end of its socket.
                Err(_) => reservations.release_all(&store).await,
            }
        });
        handle
    }
}

impl Session {
    /// Replies until the predecessor is gone or the session is paused. If it is gone, its slots are given back; if it
    /// is paused, it keeps its reservations.
    async fn serve(mut self, pause_request: PauseRequest) {
        let paused = tokio::select! {
            sender = pause_request => sender.ok(),
            // The predecessor is gone, or sends nonsense: the session ends.
            _ = self.reply_to_all() => None,
        };
        let Self { store, stream, received, unsent, reservations, bans_mark, draining, .. } = self;
        match (paused, stream.into_std()) {
            (Some(sender), Ok(stream)) => {
                let session = PausedSession { stream, received, unsent, reservations, bans_mark, draining };
                drop(sender.send(session));
            }
            _ => reservations.release_all(&store).await,
        }
    }

    /// May be dropped at any time, and called again.
    async fn reply_to_all(&mut self) -> io::Result<()> {
        let store = Arc::clone(&self.store);
        loop {
            let mut changed = pin!(store.bans().changed());
            changed.as_mut().enable();
            self.reply_to_received()?;
            self.send_new_bans();
            let (has_room, is_sending) = (self.unsent.len() < MOST_UNSENT, !self.unsent.is_empty());
            tokio::select! {
                ready = self.stream.readable(), if has_room => {
                    ready?;
                    self.received.reserve(READ);
                    match self.stream.try_read_buf(&mut self.received) {
                        Ok(0) => return Ok(()),
                        Ok(_) => {}
                        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                        Err(error) => return Err(error),
                    }
                }
                ready = self.stream.writable(), if is_sending => {
                    ready?;
                    match self.stream.try_write(&self.unsent) {
                        Ok(length) => drop(self.unsent.drain(..length)),
                        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                        Err(error) => return Err(error),
                    }
                }
                () = changed, if has_room => {}
            }
        }
    }

    fn reply_to_received(&mut self) -> io::Result<()> {
        let mut at = 0;
        while self.unsent.len() < MOST_UNSENT
            && let Some(RequestFrame { number, request }) = message::next(&self.received, &mut at)?
        {
            let reply = self.reply(request)?;
            message::push(&mut self.unsent, &ReplyFrame { number, reply });
        }
        self.received.drain(..at);
        Ok(())
    }

    /// Sends new bans, so that they hold in the predecessor too. A ban that is lifted here holds there to its end.
    fn send_new_bans(&mut self) {
        let bans = self.store.bans();
        let mark = bans.mark();
        if mark == self.bans_mark || self.unsent.len() >= MOST_UNSENT {
            return;
        }
        let new: Vec<_> = bans.records_since(self.bans_mark).iter().map(SavedBan::of).collect();
        self.bans_mark = mark;
        if !new.is_empty() {
            message::push(&mut self.unsent, &ReplyFrame { number: UNREQUESTED, reply: HandoverReply::NewBans(new) });
        }
    }

    fn reply(&mut self, request: HandoverRequest) -> io::Result<HandoverReply> {
        let store = &self.store;
        Ok(match request {
            HandoverRequest::Decide(owned) => {
                let batch = owned.batch();
                let verdicts = store.decide_now(&batch);
                let reply = verdicts.iter().map(OwnedVerdict::of).collect();
                let charged = verdicts.into_iter().map(|verdict| verdict.charged);
                self.reservations.add(&batch, charged);
                HandoverReply::Verdicts(reply)
            }
            HandoverRequest::Look(owned) => {
                HandoverReply::Verdicts(store.look_now(&owned.batch()).iter().map(OwnedVerdict::of).collect())
            }
            HandoverRequest::Settle(settlements) => {
                for settlement in settlements {
                    self.reservations.settle(store, settlement);
                }
                HandoverReply::Done
            }
            HandoverRequest::BanByLimit { saved, client, ladder } => {
                HandoverReply::Ban(saved.read().map(|ban| store.ban_by_limit_now(ban, client, &ladder)))
            }
            HandoverRequest::BanByOperator { saved, client, span } => {
                HandoverReply::Ban(saved.read().and_then(|ban| store.ban_by_operator_now(ban, client, span)))
            }
            HandoverRequest::Lift(id) => HandoverReply::Ban(store.lift_now(id)),
            HandoverRequest::IsUnsettled(key) => HandoverReply::Unsettled(store.unsettled().any(key)),
            HandoverRequest::SignIn(sign_in) => HandoverReply::SignedIn(store.sign_in_now(&sign_in)),
            HandoverRequest::ChangeSessions(changes) => {
                store.change_sessions_now(&changes);
                HandoverReply::Done
            }
            HandoverRequest::Draining => {
                // The receiver may be gone already.
                self.draining.take().map(|draining| draining.send(()));
                HandoverReply::Done
            }
            HandoverRequest::Keys(KeysPiece(piece)) => {
                store.read_keys(&piece, &mut self.reservations.slots)?;
                HandoverReply::Done
            }
            HandoverRequest::AllKeys => {
                self.all_arrived();
                HandoverReply::Done
            }
        })
    }

    /// The keys of the predecessor are all here, and with them what its own predecessors have reserved.
    fn all_arrived(&mut self) {
        let Some(ArrivingKeys { sessions, all_arrived }) = self.arriving.take() else { return };
        let sessions = sessions.into_iter().map(|session| session.split_from(&mut self.reservations));
        let resumed = sessions.map(|session| session.resume(&self.store, None)).collect::<Vec<_>>();
        self.store.predecessors().lock().extend(resumed);
        // The receiver is gone if this process ends.
        let _ = all_arrived.send(());
    }
}

// Settling the reservations of one predecessor.

impl PredecessorReservations {
    fn settle(&mut self, store: &MemoryStore, settlement: OwnedSettlement) {
        match settlement {
            OwnedSettlement::Release(key) => {
                if self.remove_slot(key) {
                    store.settle_now(&Settlement::Release(key));
                }
            }
            OwnedSettlement::TakeBack { key, rule, charged } => {
                let charged = self.settled(store, key, &charged);
                store.settle_now(&Settlement::TakeBack { key, rule: &rule, charged: &charged });
            }
            OwnedSettlement::Keep { key, rule, items, charged } => {
                let charged = self.settled(store, key, &charged);
                store.settle_now(&Settlement::Keep { key, rule: &rule, items: &items, charged: &charged });
            }
            OwnedSettlement::Charge { key, rule, items } => {
                store.settle_now(&Settlement::Charge { key, rule: &rule, items: &items });
            }
            OwnedSettlement::Reset(OwnedReset { key, charged }) => {
                // Lives until the key is reset, so that it is watched without a gap.
                let _charged = charged.map(|charged| self.settled(store, key, &charged));
                store.settle_now(&Settlement::Reset(key));
            }
            OwnedSettlement::Remember { of, most, keep, was_known } => {
                store.settle_now(&Settlement::Remember { of, most, keep, was_known });
            }
        }
    }

    /// The charge of a settlement, with its guard.
    fn settled(&mut self, store: &MemoryStore, key: KeyHash, charged: &OwnedCharged) -> Charged {
        // The key is watched as long as any of its guards exists, so its resets are counted without a gap.
        let guard = |resets: &u32| store.unsettled().watch(key).with_resets(*resets).reserve();
        let guarded = charged.with_reservation(guard);
        if charged.reservation.is_some() {
            self.remove_guard(key);
        }
        guarded
    }

    /// Gives back all slots, because the predecessor is gone. Its other reservations stay charged, because their
    /// outcome will never be known.
    async fn release_all(self, store: &MovableStore) {
        for (key, count) in self.slots {
            let released: SmallVec<[_; 4]> = (0..count).map(|_| Settlement::Release(key)).collect();
            // Fails if the counts have moved on to a process that is gone.
            let _ = store.settle(&released).await;
        }
    }
}

/// The reservations of one predecessor in the counts of this process.
#[derive(Debug, Default)]
pub(super) struct PredecessorReservations {
    /// How many slots of each key are taken.
    pub(super) slots: HashMap<KeyHash, u32>,
    /// Reservations that wait for their outcome.
    pub(super) guards: HashMap<KeyHash, Vec<ReservationGuard>>,
}

impl PredecessorReservations {
    /// Adds what a batch was charged.
    pub(super) fn add(&mut self, batch: &Batch<'_>, charged: impl Iterator<Item = Option<Charged>>) {
        for (charge, charged) in batch.charges.iter().zip(charged) {
            let Some(charged) = charged else { continue };
            if charge.is_slot() {
                self.add_slot(charge.key);
            }
            if let Some(guard) = charged.reservation {
                self.guards.entry(charge.key).or_default().push(guard);
            }
        }
    }

    pub(super) fn add_slot(&mut self, key: KeyHash) {
        *self.slots.entry(key).or_default() += 1;
    }

    /// Removes one slot of this key; `false`: the predecessor had none.
    pub(super) fn remove_slot(&mut self, key: KeyHash) -> bool {
        let Some(count) = self.slots.get_mut(&key) else { return false };
        *count -= 1;
        if *count == 0 {
            self.slots.remove(&key);
        }
        true
    }

    /// Removes one guard of this key, if there is one.
    pub(super) fn remove_guard(&mut self, key: KeyHash) {
        if let Some(guards) = self.guards.get_mut(&key) {
            guards.pop();
            if guards.is_empty() {
                self.guards.remove(&key);
            }
        }
    }

    /// Moves so many slots and guards of each key into reservations of their own.
    pub(super) fn split_off(&mut self, slots: &[(KeyHash, u32)], guards: &[(KeyHash, u32)]) -> Self {
        let mut part = Self::default();
        for (key, count) in slots {
            if let Some(all) = self.slots.get_mut(key) {
                let taken = (*all).min(*count);
                *all -= taken;
                part.slots.insert(*key, taken);
            }
        }
        self.slots.retain(|_, count| *count > 0);
        part.slots.retain(|_, count| *count > 0);
        for (key, count) in guards {
            if let Some(all) = self.guards.get_mut(key) {
                let left = all.len().saturating_sub(*count as usize);
                part.guards.insert(*key, all.split_off(left));
            }
        }
        self.guards.retain(|_, guards| !guards.is_empty());
        part
    }
}

// A session with a predecessor while no process replies to it.

/// A session with a predecessor to which no process replies: this one not yet, or not any more.
#[derive(Debug)]
pub(super) struct PausedSession {
    pub(super) stream: net::UnixStream,
    /// Bytes that were received, but are not a whole frame yet.
    pub(super) received: Vec<u8>,
    pub(super) unsent: Vec<u8>,
    pub(super) reservations: PredecessorReservations,
    /// Bans up to this mark were sent to it.
    pub(super) bans_mark: u64,
    /// Is sent when the predecessor accepts no more connections.
    pub(super) draining: Option<oneshot::Sender<()>>,
}

/// Pauses a session that runs in a task.
#[derive(Debug)]
pub(super) struct SessionHandle(oneshot::Sender<oneshot::Sender<PausedSession>>);

/// The other end of a [`SessionHandle`]: what the session waits for.
pub(super) type PauseRequest = oneshot::Receiver<oneshot::Sender<PausedSession>>;

impl SessionHandle {
    pub(super) fn new() -> (Self, PauseRequest) {
        let (handle, request) = oneshot::channel();
        (Self(handle), request)
    }

    /// Pauses the session; `None`: it has ended. Blocks.
    pub(super) fn pause(self) -> Option<PausedSession> {
        let (sender, receiver) = oneshot::channel();
        self.0.send(sender).ok()?;
        receiver.blocking_recv().ok()
    }
}
