//! Replies to a predecessor, and keeps its reservations while it lives.

use std::io;
use std::io::ErrorKind;
use std::pin::pin;
use std::sync::Arc;

use smallvec::SmallVec;
use tokio::net::UnixStream;
use tokio::sync::oneshot;

use super::arriving_keys::ArrivingKeys;
use super::frame;
use super::keys_piece::KeysPiece;
use super::message::HandoverReply;
use super::message::HandoverRequest;
use super::message::OwnedCharged;
use super::message::OwnedSettlement;
use super::message::OwnedVerdict;
use super::message::ReplyFrame;
use super::message::RequestFrame;
use super::message::UNREQUESTED;
use super::paused::PauseRequest;
use super::paused::PausedSession;
use super::paused::SessionHandle;
use super::reservations::PredecessorReservations;
use crate::decision::Settlement;
use crate::decision::batch::Charged;
use crate::key::KeyHash;
use crate::store::MemoryStore;
use crate::store::Store;
use crate::store::bans::saved::SavedBan;

#[derive(Debug)]
struct Session {
    store: Arc<MemoryStore>,
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
    pub(super) fn resume(self, store: &Arc<MemoryStore>, arriving: Option<ArrivingKeys>) -> SessionHandle {
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
            && let Some(RequestFrame { number, request }) = frame::next(&self.received, &mut at)?
        {
            let reply = self.reply(request)?;
            frame::push(&mut self.unsent, &ReplyFrame { number, reply });
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
            frame::push(&mut self.unsent, &ReplyFrame { number: UNREQUESTED, reply: HandoverReply::NewBans(new) });
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
        self.store.handover().sessions.lock().extend(resumed);
        // The receiver is gone if this process ends.
        let _ = all_arrived.send(());
    }
}

impl PredecessorReservations {
    fn settle(&mut self, store: &MemoryStore, settlement: OwnedSettlement) {
        match settlement {
            OwnedSettlement::Release(key) => {
                if self.remove_slot(key) {
                    store.settle_now(&Settlement::Release(key));
                }
            }
            OwnedSettlement::TakeBack { key, rule, charged } => {
                let charged = self.settled(store, key, charged);
                store.settle_now(&Settlement::TakeBack { key, rule: &rule, charged: &charged });
            }
            OwnedSettlement::Keep { key, rule, items, charged } => {
                let charged = self.settled(store, key, charged);
                store.settle_now(&Settlement::Keep { key, rule: &rule, items: &items, charged: &charged });
            }
            OwnedSettlement::Charge { key, rule, items } => {
                store.settle_now(&Settlement::Charge { key, rule: &rule, items: &items });
            }
            OwnedSettlement::Reset { key, charged } => {
                // Lives until the key is reset, so that it is watched without a gap.
                let _charged = charged.map(|charged| self.settled(store, key, charged));
                store.settle_now(&Settlement::Reset(key));
            }
            OwnedSettlement::Remember { of, most, keep } => {
                store.settle_now(&Settlement::Remember { of, most, keep });
            }
        }
    }

    /// The charge of a settlement, with its guard.
    fn settled(&mut self, store: &MemoryStore, key: KeyHash, charged: OwnedCharged) -> Charged {
        let has_reservation = charged.has_reservation();
        // The key is watched as long as any of its guards exists, so its resets are counted without a gap.
        let charged = charged.charged(|resets| Some(store.unsettled().watch(key).with_resets(resets).reserve()));
        if has_reservation {
            self.remove_guard(key);
        }
        charged
    }

    /// Gives back all slots, because the predecessor is gone. Its other reservations stay charged, because their
    /// outcome will never be known.
    async fn release_all(self, store: &MemoryStore) {
        for (key, count) in self.slots {
            let released: SmallVec<[_; 4]> = (0..count).map(|_| Settlement::Release(key)).collect();
            // Fails if the counts have moved on to a process that is gone.
            let _ = store.settle(&released).await;
        }
    }
}

/// At least this much is read at a time.
const READ: usize = 16 << 10;

/// No more requests are read from a predecessor that does not read its replies.
const MOST_UNSENT: usize = 1 << 20;
