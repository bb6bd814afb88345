//! Keys that arrive from a predecessor, and what waits for the last of them.

use std::collections::{HashMap, VecDeque};
use std::fmt::Debug;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::rules::decision::{Batch, OwnedSettlement, OwnedVerdict};
use crate::rules::key::KeyHash;
use crate::store::handover::message::HandoverRequest;
use crate::store::handover::session::{PausedSession, PredecessorReservations};
use crate::store::handover::store::MovableStore;

/// The session of a predecessor of the predecessor. What it has reserved is among the keys that arrive.
#[derive(Debug)]
pub(super) struct AwaitingSession {
    pub(super) stream: UnixStream,
    pub(super) received: Vec<u8>,
    pub(super) unsent: Vec<u8>,
    pub(super) slots: Vec<(KeyHash, u32)>,
    pub(super) guards: Vec<(KeyHash, u32)>,
}

/// The sessions that are applied with the last key, and who waits for it.
#[derive(Debug)]
pub(super) struct ArrivingKeys {
    pub(super) sessions: Vec<AwaitingSession>,
    pub(super) all_arrived: oneshot::Sender<()>,
}

/// The keys of a predecessor on their way to this process.
#[derive(Debug)]
pub struct Arrival {
    store: Arc<MovableStore>,
    all_arrived: oneshot::Receiver<()>,
}

impl AwaitingSession {
    /// Takes its reservations out of those of the predecessor, which had them before.
    pub(super) fn split_from(self, reservations: &mut PredecessorReservations) -> PausedSession {
        let Self { stream, received, unsent, slots, guards } = self;
        let reservations = reservations.split_off(&slots, &guards);
        PausedSession { stream, received, unsent, reservations, bans_mark: 0, draining: None }
    }
}

impl Arrival {
    pub(super) fn new(store: &Arc<MovableStore>) -> (Self, oneshot::Sender<()>) {
        let (sender, all_arrived) = oneshot::channel();
        (Self { store: Arc::clone(store), all_arrived }, sender)
    }

    /// Returns when all keys are here. Fails if the predecessor is gone before, or sends nothing for `patience`; those
    /// that have arrived stay here then.
    pub async fn complete(mut self, patience: Duration) -> io::Result<()> {
        let mut keys = self.store.len();
        let arrived = loop {
            match timeout(patience, &mut self.all_arrived).await {
                Ok(arrived) => break arrived.map_err(|_| ErrorKind::UnexpectedEof.into()),
                Err(_) if self.store.len() == keys => break Err(ErrorKind::TimedOut.into()),
                Err(_) => keys = self.store.len(),
            }
        };
        self.store.await_keys(&[]);
        arrived
    }
}

// Keys that leave this process while it asks its successor already.

/// A request waits behind no more pieces than these, of which the successor reads one while this process makes another.
const MOST_ON_THEIR_WAY: usize = 2;

/// Where the keys are that have not left yet.
pub(super) trait KeySource: Debug + Send {
    /// Takes this key out, if it is there, appends it to the piece, and notes how many of its slots are taken.
    fn take(&mut self, key: KeyHash, piece: &mut Vec<u8>, slots: &mut HashMap<KeyHash, u32>);

    /// The same with the next keys. The piece stays empty when none is left.
    fn take_next(&mut self, piece: &mut Vec<u8>, slots: &mut HashMap<KeyHash, u32>);

    /// The keys that are left stay, and so do these slots of those that have left: requests wait until this process decides
    /// again.
    fn stay(&mut self, slots: &HashMap<KeyHash, u32>);
}

/// Keys that leave: in turn, and before the first request that is about them.
#[derive(Debug)]
pub(super) struct LeavingKeys {
    source: Box<dyn KeySource>,
    /// The slots of the keys that have left, which requests of this process have.
    reserved: PredecessorReservations,
    /// The numbers of the pieces that the successor has not taken yet.
    on_their_way: VecDeque<u64>,
    /// Is sent when the last word about them has been sent, so that there is no way back.
    all_sent: oneshot::Sender<()>,
    /// That word is on its way.
    is_last_said: bool,
}

impl LeavingKeys {
    /// The keys, and a receiver that gets a value when all of them have left. If it gets none, the others stay.
    pub(super) fn new(source: Box<dyn KeySource>) -> (Self, oneshot::Receiver<()>) {
        let (all_sent, receiver) = oneshot::channel();
        let (reserved, on_their_way) = (PredecessorReservations::default(), VecDeque::new());
        (Self { source, reserved, on_their_way, all_sent, is_last_said: false }, receiver)
    }

    /// The keys of a request that are still here. They go before it.
    pub(super) fn take_for(&mut self, request: &HandoverRequest) -> Option<HandoverRequest> {
        let mut piece = Vec::new();
        request.each_key(|key| self.source.take(key, &mut piece, &mut self.reserved.slots));
        if let HandoverRequest::Settle(settlements) = request {
            for settlement in settlements {
                if let OwnedSettlement::Release(key) = settlement {
                    self.reserved.remove_slot(*key);
                }
            }
        }
        (!piece.is_empty()).then_some(HandoverRequest::Keys(KeysPiece(piece)))
    }

    /// The successor has decided this batch.
    pub(super) fn note(&mut self, batch: &Batch<'_>, verdicts: &[OwnedVerdict]) {
        let charged = batch.charges.iter().zip(verdicts).filter(|(_, verdict)| verdict.charged.is_some());
        for (charge, _) in charged.filter(|(charge, _)| charge.is_slot()) {
            self.reserved.add_slot(charge.key);
        }
    }

    /// Whether the last word about them was said.
    pub(super) fn is_last_said(&self) -> bool {
        self.is_last_said
    }

    /// Keys were sent under this number.
    pub(super) fn sent(&mut self, number: u64) {
        self.on_their_way.push_back(number);
    }

    /// The successor has replied to what was sent under this number.
    pub(super) fn replied(&mut self, number: u64) {
        if self.on_their_way.front() == Some(&number) {
            self.on_their_way.pop_front();
        }
    }

    /// The next keys, or the word that these were all; `None`: not now, because requests would wait behind them.
    pub(super) fn take_next(&mut self) -> Option<HandoverRequest> {
        if self.on_their_way.len() >= MOST_ON_THEIR_WAY {
            return None;
        }
        let mut piece = Vec::new();
        self.source.take_next(&mut piece, &mut self.reserved.slots);
        self.is_last_said = piece.is_empty();
        Some(if self.is_last_said { HandoverRequest::AllKeys } else { HandoverRequest::Keys(KeysPiece(piece)) })
    }

    /// All have left.
    pub(super) fn finish(self) {
        // The receiver waits.
        let _ = self.all_sent.send(());
    }

    /// The successor is gone, and never had all of them.
    pub(super) fn stay(mut self) {
        self.source.stay(&self.reserved.slots);
    }
}

// Keys on their way, as one run of bytes.

/// Keys as the memory store writes them. Bytes of a `Vec` would be written and read one by one.
#[derive(Debug)]
pub(in crate::store) struct KeysPiece(pub(super) Vec<u8>);

impl Serialize for KeysPiece {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for KeysPiece {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(BytesVisitor)
    }
}

struct BytesVisitor;

impl Visitor<'_> for BytesVisitor {
    type Value = KeysPiece;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of keys")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<KeysPiece, E> {
        Ok(KeysPiece(bytes.to_vec()))
    }
}
