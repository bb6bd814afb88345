//! Answering a predecessor, and keeping what it holds for as long as it does.

use std::collections::HashMap;
use std::io;
use std::io::ErrorKind;
use std::os::unix::net;
use std::pin::pin;
use std::sync::Arc;

use smallvec::SmallVec;
use tokio::net::UnixStream;
use tokio::sync::oneshot;

use super::frame;
use super::message::Answer;
use super::message::Answered;
use super::message::Asked;
use super::message::NOBODY;
use super::message::OwnedCharged;
use super::message::OwnedSettlement;
use super::message::OwnedVerdict;
use super::message::Question;
use crate::decision::Batch;
use crate::decision::Settlement;
use crate::decision::batch::Charged;
use crate::decision::ticket::Ticket;
use crate::key::KeyHash;
use crate::store::MemoryStore;
use crate::store::Store;
use crate::store::bans::shared::Written;

/// A predecessor that is not being answered: not yet, or not any more by this process.
#[derive(Debug)]
pub(super) struct Parked {
    pub(super) stream: net::UnixStream,
    /// What was read and not understood, as it is not whole.
    pub(super) received: Vec<u8>,
    pub(super) unsent: Vec<u8>,
    pub(super) held: Held,
    /// Up to which mark bans were told.
    pub(super) bans: u64,
    /// Told when it accepts no more connections.
    pub(super) draining: Option<oneshot::Sender<()>>,
}

/// What a predecessor holds here.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// How many slots in flight of each key.
    pub(super) slots: HashMap<KeyHash, u32>,
    /// Reservations that wait for their outcome.
    pub(super) tickets: HashMap<KeyHash, Vec<Ticket>>,
}

/// How a session is told to stop, and to hand back its predecessor.
#[derive(Debug)]
pub(super) struct Parking(oneshot::Sender<oneshot::Sender<Parked>>);

#[derive(Debug)]
struct Session {
    store: Arc<MemoryStore>,
    stream: UnixStream,
    received: Vec<u8>,
    unsent: Vec<u8>,
    held: Held,
    bans: u64,
    draining: Option<oneshot::Sender<()>>,
}

impl Parked {
    /// Answers it from here on, on the runtime of the caller.
    pub(super) fn resume(self, store: &Arc<MemoryStore>) -> Parking {
        let (park, parked) = oneshot::channel();
        let store = Arc::clone(store);
        tokio::spawn(async move {
            let Self { stream, received, unsent, held, bans, draining } = self;
            match stream.set_nonblocking(true).and_then(|()| UnixStream::from_std(stream)) {
                Ok(stream) => Session { store, stream, received, unsent, held, bans, draining }.serve(parked).await,
                // It learns of that by the end of its socket.
                Err(_) => held.let_go(&store).await,
            }
        });
        Parking(park)
    }
}

impl Parking {
    /// Stops answering; `None`: it has ended. Blocks.
    pub(super) fn park(self) -> Option<Parked> {
        let (tell, told) = oneshot::channel();
        self.0.send(tell).ok()?;
        told.blocking_recv().ok()
    }
}

impl Session {
    /// Answers until the predecessor is gone: then what it held comes back. Or until it is parked: then it holds it still.
    async fn serve(mut self, parked: oneshot::Receiver<oneshot::Sender<Parked>>) {
        let asked = tokio::select! {
            asked = parked => asked.ok(),
            // Damaged or gone: there is nobody to go on with.
            _ = self.answer_all() => None,
        };
        let Self { store, stream, received, unsent, held, bans, draining } = self;
        match (asked, stream.into_std()) {
            (Some(asked), Ok(stream)) => drop(asked.send(Parked { stream, received, unsent, held, bans, draining })),
            _ => held.let_go(&store).await,
        }
    }

    /// May be dropped at any time, and called again.
    async fn answer_all(&mut self) -> io::Result<()> {
        let store = Arc::clone(&self.store);
        loop {
            let mut changed = pin!(store.bans().changed());
            changed.as_mut().enable();
            self.answer_received()?;
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

    fn answer_received(&mut self) -> io::Result<()> {
        let mut at = 0;
        while self.unsent.len() < MOST_UNSENT
            && let Some(Asked { number, question }) = frame::next(&self.received, &mut at)?
        {
            let answer = self.answer(question);
            frame::push(&mut self.unsent, &Answered { number, answer });
        }
        self.received.drain(..at);
        Ok(())
    }

    /// Bans that begin here hold there too. One that is lifted holds there to the end.
    fn send_new_bans(&mut self) {
        let bans = self.store.bans();
        let mark = bans.mark();
        if mark == self.bans || self.unsent.len() >= MOST_UNSENT {
            return;
        }
        let begun: Vec<_> = bans.records_since(self.bans).iter().map(Written::of).collect();
        self.bans = mark;
        if !begun.is_empty() {
            frame::push(&mut self.unsent, &Answered { number: NOBODY, answer: Answer::Banned(begun) });
        }
    }

    fn answer(&mut self, question: Question) -> Answer {
        let store = &self.store;
        match question {
            Question::Decide(owned) => {
                let batch = owned.batch();
                let verdicts = store.decide_now(&batch);
                let answer = verdicts.iter().map(OwnedVerdict::of).collect();
                let charged = verdicts.into_iter().map(|verdict| verdict.charged);
                self.held.take(&batch, charged);
                return Answer::Verdicts(answer);
            }
            Question::Look(owned) => {
                return Answer::Verdicts(store.look_now(&owned.batch()).iter().map(OwnedVerdict::of).collect());
            }
            Question::Settle(settlements) => {
                for settlement in settlements {
                    self.held.settle(store, settlement);
                }
            }
            Question::Trip { subject, client, ladder } => {
                return Answer::Ban(subject.read().map(|asked| store.ban_by_limit_now(asked, client, &ladder)));
            }
            Question::Ban { subject, client, span } => {
                return Answer::Ban(subject.read().and_then(|asked| store.ban_by_operator_now(asked, client, span)));
            }
            Question::Lift(id) => return Answer::Ban(store.lift_now(id)),
            Question::IsUnsettled(key) => return Answer::Unsettled(store.unsettled().any(key)),
            Question::Draining => {
                // Whoever started may not wait for it any more.
                self.draining.take().map(|told| told.send(()));
            }
        }
        Answer::Done
    }
}

impl Held {
    fn take(&mut self, batch: &Batch<'_>, charged: impl Iterator<Item = Option<Charged>>) {
        for (charge, charged) in batch.charges.iter().zip(charged) {
            let Some(charged) = charged else { continue };
            if charge.is_slot() {
                *self.slots.entry(charge.key).or_default() += 1;
            }
            if let Some(ticket) = charged.ticket {
                self.tickets.entry(charge.key).or_default().push(ticket);
            }
        }
    }

    fn settle(&mut self, store: &MemoryStore, settlement: OwnedSettlement) {
        match settlement {
            OwnedSettlement::Release(key) => {
                if self.give_up_slot(key) {
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
                let charged = charged.map(|charged| self.settled(store, key, charged));
                store.settle_now(&Settlement::Reset { key, charged: charged.as_ref() });
            }
            OwnedSettlement::Remember { of, most, keep } => {
                store.settle_now(&Settlement::Remember { of, most, keep });
            }
        }
    }

    /// Whether the predecessor held a slot of this key, which it does not any more.
    fn give_up_slot(&mut self, key: KeyHash) -> bool {
        let Some(count) = self.slots.get_mut(&key) else { return false };
        *count -= 1;
        if *count == 0 {
            self.slots.remove(&key);
        }
        true
    }

    /// A charge whose outcome is known: it holds its ticket to the end of this.
    fn settled(&mut self, store: &MemoryStore, key: KeyHash, charged: OwnedCharged) -> Charged {
        let has_ticket = charged.has_ticket();
        // The key is watched for as long as there is any ticket of it, and so resets are counted on.
        let charged = charged.charged(|resets| Some(store.unsettled().watch(key).after(resets).reserve()));
        if has_ticket && let Some(tickets) = self.tickets.get_mut(&key) {
            tickets.pop();
            if tickets.is_empty() {
                self.tickets.remove(&key);
            }
        }
        charged
    }

    /// Its holder is gone: slots come back. What waits for an outcome that nobody will tell stays counted.
    async fn let_go(self, store: &MemoryStore) {
        for (key, count) in self.slots {
            let released: SmallVec<[_; 4]> = (0..count).map(|_| Settlement::Release(key)).collect();
            // Fails where these counts have moved on to a process that is gone.
            let _ = store.settle(&released).await;
        }
    }
}

/// How much is read at a time, at least.
const READ: usize = 16 << 10;

/// A predecessor that does not read its answers is not asked for more.
const MOST_UNSENT: usize = 1 << 20;
