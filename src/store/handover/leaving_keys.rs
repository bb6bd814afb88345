//! Keys that leave this process while it asks its successor already.

use std::collections::HashMap;
use std::fmt::Debug;

use tokio::sync::oneshot;

use super::keys_piece::KeysPiece;
use super::message::HandoverRequest;
use super::message::OwnedSettlement;
use super::message::OwnedVerdict;
use super::reservations::PredecessorReservations;
use crate::decision::Batch;
use crate::key::KeyHash;

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
    /// Is sent when the last word about them has been sent, so that there is no way back.
    all_sent: oneshot::Sender<()>,
    /// That word is on its way.
    is_last_said: bool,
}

impl LeavingKeys {
    /// The keys, and a receiver that gets a value when all of them have left. If it gets none, the others stay.
    pub(super) fn new(source: Box<dyn KeySource>) -> (Self, oneshot::Receiver<()>) {
        let (all_sent, receiver) = oneshot::channel();
        let reserved = PredecessorReservations::default();
        (Self { source, reserved, all_sent, is_last_said: false }, receiver)
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
        let charged = batch.charges.iter().zip(verdicts).filter(|(_, verdict)| verdict.is_charged());
        for (charge, _) in charged.filter(|(charge, _)| charge.is_slot()) {
            self.reserved.add_slot(charge.key);
        }
    }

    /// The next keys, or the word that these were all; `None`: that word was said.
    pub(super) fn take_next(&mut self) -> Option<HandoverRequest> {
        if self.is_last_said {
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
