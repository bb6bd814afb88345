//! Requests of a predecessor, and replies of its successor.

use std::io::{ErrorKind, Read};
use std::net::IpAddr;
use std::time::Duration;
use std::{io, mem};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::rules::decision::{Batch, OwnedBatch, OwnedSettlement, OwnedVerdict, SessionChange, SignIn};
use crate::rules::key::KeyHash;
use crate::rules::limit::{Ladder, Rule};
use crate::store::bans::BanId;
use crate::store::bans::codec::SavedBan;
use crate::store::handover::moving_keys::KeysPiece;

/// The number of a reply that was sent without a request.
pub(super) const UNREQUESTED: u64 = 0;

/// A request and its number, which the reply repeats.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct RequestFrame {
    pub(super) number: u64,
    pub(super) request: HandoverRequest,
}

#[derive(Debug, Deserialize, Serialize)]
pub(in crate::store) enum HandoverRequest {
    Decide(Box<OwnedBatch>),
    Look(Box<OwnedBatch>),
    Settle(Vec<OwnedSettlement>),
    /// A limit that bans was reached. Of the saved ban only subject and reason count.
    BanByLimit {
        saved: SavedBan,
        client: Option<IpAddr>,
        ladder: Ladder,
    },
    BanByOperator {
        saved: SavedBan,
        client: Option<IpAddr>,
        span: Duration,
    },
    Lift(BanId),
    IsUnsettled(KeyHash),
    /// The predecessor accepts no more connections.
    Draining,
    SignIn(SignIn),
    ChangeSessions(Vec<SessionChange>),
    /// Keys of the predecessor, which belong to the successor from now on.
    Keys(KeysPiece),
    /// These were all: the successor serves from now on.
    AllKeys,
}

#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ReplyFrame {
    pub(super) number: u64,
    pub(super) reply: HandoverReply,
}

#[derive(Debug, Deserialize, Serialize)]
pub(in crate::store) enum HandoverReply {
    Done,
    Verdicts(Vec<OwnedVerdict>),
    /// The ban that holds; `None`: there is no such ban, or no room for it.
    Ban(Option<SavedBan>),
    Unsettled(bool),
    /// New bans of the successor, sent without a request.
    NewBans(Vec<SavedBan>),
    /// Whether the success is the account's own.
    SignedIn(bool),
}

impl HandoverRequest {
    /// The keys that the successor must have to answer.
    pub(super) fn each_key(&self, mut visit: impl FnMut(KeyHash)) {
        match self {
            Self::Decide(batch) | Self::Look(batch) => {
                batch.batch().charges.iter().for_each(|charge| visit(charge.key));
            }
            Self::Settle(settlements) => settlements.iter().filter_map(OwnedSettlement::key).for_each(visit),
            _ => {}
        }
    }
}

/// The settlements that give back everything that was charged for a request whose caller has left.
pub(super) fn undo(batch: &Batch<'_>, verdicts: Vec<OwnedVerdict>) -> Vec<OwnedSettlement> {
    let charged = batch.charges.iter().zip(verdicts);
    let charged = charged.filter_map(|(charge, verdict)| Some((charge, verdict.charged?)));
    let undone = charged.filter_map(|(charge, charged)| match charge.rule {
        Rule::Concurrent(_) => Some(OwnedSettlement::Release(charge.key)),
        rule if charge.waits_for_outcome() => {
            Some(OwnedSettlement::TakeBack { key: charge.key, rule: rule.clone(), charged })
        }
        _ => None,
    });
    undone.collect()
}

// Frames: a length in four bytes, and a message.

/// More than the longest log of one key and the keys sent with it.
const LONGEST: usize = 64 << 20;

const HEAD: usize = 4;

/// Appends a message to the bytes to be sent.
pub(super) fn push(unsent: &mut Vec<u8>, message: &impl Serialize) {
    let begin = unsent.len();
    let mut buffer = mem::take(unsent);
    buffer.extend_from_slice(&[0; HEAD]);
    buffer = postcard::to_extend(message, buffer).expect("messages can be written");
    let length = u32::try_from(buffer.len() - begin - HEAD).expect("frames are short");
    buffer[begin..begin + HEAD].copy_from_slice(&length.to_le_bytes());
    *unsent = buffer;
}

/// The message of the frame that begins at `at`, if all of it was received; moves `at` behind it.
pub(super) fn next<T: DeserializeOwned>(received: &[u8], at: &mut usize) -> io::Result<Option<T>> {
    let rest = &received[*at..];
    let Some((head, rest)) = rest.split_first_chunk::<HEAD>() else { return Ok(None) };
    let length = length(*head)?;
    let Some(frame) = rest.get(..length) else { return Ok(None) };
    *at += HEAD + length;
    read(frame).map(Some)
}

/// Reads one frame, and no byte behind it.
pub(super) fn receive<T: DeserializeOwned>(mut from: impl Read) -> io::Result<T> {
    let mut head = [0; HEAD];
    from.read_exact(&mut head)?;
    let mut frame = vec![0; length(head)?];
    from.read_exact(&mut frame)?;
    read(&frame)
}

fn length(head: [u8; HEAD]) -> io::Result<usize> {
    let length = u32::from_le_bytes(head) as usize;
    if length > LONGEST {
        return Err(io::Error::new(ErrorKind::InvalidData, "a frame is longer than any message"));
    }
    Ok(length)
}

fn read<T: DeserializeOwned>(frame: &[u8]) -> io::Result<T> {
    postcard::from_bytes(frame).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

// What both processes of a takeover understand of a transfer.

/// The version of a transfer: that of the process that knows fewer.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum TransferVersion {
    /// All keys arrive before either process decides again. Sessions do not move.
    V2,
    /// Sessions move, too.
    V3,
    /// Keys move while decisions are made.
    V4,
}

impl TransferVersion {
    pub(super) fn has_sessions(self) -> bool {
        self >= Self::V3
    }

    pub(super) fn keys_follow(self) -> bool {
        self >= Self::V4
    }
}
