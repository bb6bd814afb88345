//! Moves all counts to the successor, and with them the sessions of predecessors that ask this process.
//!
//! All but the keys moves while nobody decides. Then the successor decides, and the keys follow while it does: in turn,
//! and each before the first request that is about it.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::{io, mem};

use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::client::SuccessorClient;
use super::message::HandoverRequest;
use crate::rules::key::KeyHash;
use crate::store::handover::message;
use crate::store::handover::message::TransferVersion;
use crate::store::handover::moving_keys::{Arrival, ArrivingKeys, AwaitingSession, KeySource, LeavingKeys};
use crate::store::handover::session::{PausedSession, PredecessorReservations, SessionHandle};
use crate::store::handover::store::MovableStore;
use crate::store::sessions::codec::SavedSession;
use crate::store::snapshot::writer;
use crate::words::pending_reservations::ReservationGuard;
use crate::words::units::counted;

/// Sessions are sent in pieces of this many bytes.
const SESSIONS_PIECE: usize = 1 << 20;

/// Keys follow in pieces of this many bytes: a request waits behind a few of them.
const PIECE: usize = 16 << 10;

/// Counts that are about to move. If this is dropped before they have moved, they stay here and thaw.
#[derive(Debug)]
pub struct FrozenCounts {
    store: Arc<MovableStore>,
    /// The sessions of predecessors, which move with the counts.
    paused: Vec<PausedSession>,
    /// Runs these sessions again if the counts thaw.
    runtime: Handle,
    version: TransferVersion,
    has_moved: bool,
}

/// Counts that have arrived, while no reply is sent to their predecessors yet.
#[derive(Debug)]
pub struct ReceivedCounts {
    store: Arc<MovableStore>,
    /// The reservations of the process that sent the keys.
    reservations: PredecessorReservations,
    sessions: Vec<AwaitingSession>,
    /// The keys follow.
    keys_follow: bool,
}

/// The messages of a transfer, in the order in which they are sent. Keys come in several pieces.
#[derive(Debug, Deserialize, Serialize)]
enum TransferMessage {
    /// Bans and known clients, in the form of a snapshot without sessions.
    Snapshot(Vec<u8>),
    /// The session of a predecessor of the predecessor. Its socket follows.
    Session {
        received: Vec<u8>,
        unsent: Vec<u8>,
        slots: Vec<(KeyHash, u32)>,
        guards: Vec<(KeyHash, u32)>,
    },
    /// This many bytes of keys follow.
    Keys {
        length: u32,
    },
    /// Reservations that wait for their outcome: key, count, and how often the key was reset before.
    Unsettled(Vec<(KeyHash, u32, u32)>),
    End,
    /// This many bytes of sessions follow.
    Sessions {
        length: u32,
    },
    /// The keys follow when the counts have moved: so many in each shard.
    KeysFollow(Vec<usize>),
}

/// The keys of a store that leave.
#[derive(Debug)]
struct StoredKeys {
    store: Arc<MovableStore>,
    /// The shard that is next.
    next: usize,
    /// How large a piece is, in bytes.
    piece: usize,
}

impl KeySource for StoredKeys {
    fn take(&mut self, key: KeyHash, piece: &mut Vec<u8>, slots: &mut HashMap<KeyHash, u32>) {
        self.store.take_key(key, piece, slots);
    }

    fn take_next(&mut self, piece: &mut Vec<u8>, slots: &mut HashMap<KeyHash, u32>) {
        self.store.take_keys(&mut self.next, self.piece, piece, slots);
    }

    fn stay(&mut self, slots: &HashMap<KeyHash, u32>) {
        self.store.begin_move();
        self.store.restore_slots(slots);
    }
}

impl FrozenCounts {
    /// Freezes the counts for a successor that understands this version. Blocks; called on a blocking thread of the
    /// runtime that runs the sessions.
    pub fn begin(store: &Arc<MovableStore>, version: TransferVersion) -> Self {
        let sessions = mem::take(&mut *store.predecessors().lock());
        let paused = sessions.into_iter().filter_map(SessionHandle::pause).collect();
        // No predecessor asks any more. Requests of this process wait from here on.
        store.freeze();
        Self { store: Arc::clone(store), paused, runtime: Handle::current(), version, has_moved: false }
    }

    /// Sends what does not follow later; `pass` passes a socket to the other process.
    pub fn send(
        &self,
        mut stream: &UnixStream,
        mut pass: impl FnMut(BorrowedFd<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        send(stream, &TransferMessage::Snapshot(writer::export_without_sessions(&self.store)?))?;
        for PausedSession { stream: socket, received, unsent, reservations, .. } in &self.paused {
            let slots = reservations.slots.iter().map(|(key, count)| (*key, *count)).collect();
            let guards = reservations.guards.iter().map(|(key, guards)| (*key, count(guards))).collect();
            let (received, unsent) = (received.clone(), unsent.clone());
            send(stream, &TransferMessage::Session { received, unsent, slots, guards })?;
            pass(socket.as_fd())?;
        }
        if self.version.keys_follow() {
            send(stream, &TransferMessage::KeysFollow(self.store.keys_of_shards()))?;
        } else {
            self.store.write_keys(|piece| {
                let length = u32::try_from(piece.len()).map_err(io::Error::other)?;
                send(stream, &TransferMessage::Keys { length })?;
                stream.write_all(piece)
            })?;
        }
        if self.version.has_sessions() {
            let mut sessions = Vec::new();
            self.store.write_sessions(&mut sessions);
            for piece in sessions.chunks(SESSIONS_PIECE) {
                let length = u32::try_from(piece.len()).map_err(io::Error::other)?;
                send(stream, &TransferMessage::Sessions { length })?;
                stream.write_all(piece)?;
            }
        }
        send(stream, &TransferMessage::Unsettled(self.store.unsettled().all()))?;
        send(stream, &TransferMessage::End)
    }

    /// Completes the move: the process at the other end decides from now on, and gets the keys. Returns when it has all
    /// of them; fails if it is gone before, and then the counts that are left stay here. Blocks.
    pub fn move_to(self, stream: UnixStream) -> io::Result<Arc<SuccessorClient>> {
        self.move_in_pieces(stream, PIECE)
    }

    /// The same with pieces of so many bytes.
    pub(super) fn move_in_pieces(mut self, stream: UnixStream, piece: usize) -> io::Result<Arc<SuccessorClient>> {
        let before = self.store.len();
        let (keys, all_sent) = self.version.keys_follow().then(|| self.leaving(piece)).unzip();
        let client = {
            let _runtime = self.runtime.enter();
            SuccessorClient::begin(stream, self.store.bans(), self.version.has_sessions(), keys)
        };
        self.store.complete_move(Arc::clone(&client));
        if all_sent.is_some_and(|all_sent| all_sent.blocking_recv().is_err()) {
            let lost = before.saturating_sub(self.store.len());
            let message = format!("it is gone, and with it the counts of {}, which begin anew", counted(lost, "key"));
            return Err(io::Error::other(message));
        }
        self.has_moved = true;
        self.store.clear();
        Ok(client)
    }

    fn leaving(&self, piece: usize) -> (LeavingKeys, oneshot::Receiver<()>) {
        LeavingKeys::new(Box::new(StoredKeys { store: Arc::clone(&self.store), next: 0, piece }))
    }
}

impl Drop for FrozenCounts {
    fn drop(&mut self) {
        if self.has_moved {
            return;
        }
        self.store.thaw();
        let _runtime = self.runtime.enter();
        let resumed = self.paused.drain(..).map(|session| session.resume(&self.store, None));
        self.store.predecessors().lock().extend(resumed);
    }
}

impl ReceivedCounts {
    /// Receives all counts. If they do not arrive completely, none are kept. Blocks.
    pub fn receive(
        store: &Arc<MovableStore>,
        stream: &UnixStream,
        accept: impl FnMut() -> io::Result<OwnedFd>,
    ) -> io::Result<Self> {
        let received = receive(store, stream, accept);
        if received.is_err() {
            store.clear();
        }
        received
    }

    /// Starts the sessions of all predecessors on the runtime of the caller: of the one at the other end of `stream`,
    /// and of those before it when all keys are here. `draining` is sent when the one at the other end accepts no more
    /// connections. This process serves when the arrival is complete.
    pub fn begin(self, stream: UnixStream, draining: oneshot::Sender<()>) -> Arrival {
        let Self { store, mut reservations, sessions, keys_follow } = self;
        let (arrival, all_arrived) = Arrival::new(&store);
        let mut resumed = Vec::new();
        let arriving = if keys_follow {
            Some(ArrivingKeys { sessions, all_arrived })
        } else {
            let paused = sessions.into_iter().map(|session| session.split_from(&mut reservations));
            resumed.extend(paused.map(|session| session.resume(&store, None)));
            // The arrival waits.
            let _ = all_arrived.send(());
            None
        };
        let (received, unsent, bans_mark) = (Vec::new(), Vec::new(), store.bans().mark());
        let draining = Some(draining);
        let predecessor = PausedSession { stream, received, unsent, reservations, bans_mark, draining };
        resumed.push(predecessor.resume(&store, arriving));
        store.predecessors().lock().extend(resumed);
        arrival
    }
}

impl SuccessorClient {
    /// Tells the successor that this process accepts no more connections.
    pub fn announce_draining(&self) {
        self.send(HandoverRequest::Draining);
    }
}

fn send(mut stream: &UnixStream, message: &TransferMessage) -> io::Result<()> {
    let mut frame = Vec::new();
    message::push(&mut frame, message);
    stream.write_all(&frame)
}

fn receive(
    store: &Arc<MovableStore>,
    mut stream: &UnixStream,
    mut accept: impl FnMut() -> io::Result<OwnedFd>,
) -> io::Result<ReceivedCounts> {
    let (mut slots, mut guards) = (HashMap::new(), HashMap::new());
    let mut sessions = Vec::new();
    let (mut saved_sessions, mut keys_follow) = (Vec::new(), false);
    loop {
        match message::receive(stream)? {
            TransferMessage::Snapshot(bytes) if writer::import_update(&bytes, store) => {}
            TransferMessage::Snapshot(_) => return Err(unreadable()),
            TransferMessage::Session { received, unsent, slots, guards } => {
                let stream = UnixStream::from(accept()?);
                sessions.push(AwaitingSession { stream, received, unsent, slots, guards });
            }
            TransferMessage::Keys { length } => {
                let mut piece = vec![0; length as usize];
                stream.read_exact(&mut piece)?;
                store.read_keys(&piece, &mut slots)?;
            }
            TransferMessage::Sessions { length } => {
                let begin = saved_sessions.len();
                saved_sessions.resize(begin + length as usize, 0);
                stream.read_exact(&mut saved_sessions[begin..])?;
            }
            TransferMessage::Unsettled(waiting) => {
                let waiting = waiting.into_iter();
                guards
                    .extend(waiting.map(|(key, count, resets)| (key, store.unsettled().take_over(key, count, resets))));
            }
            TransferMessage::KeysFollow(shards) => {
                keys_follow = true;
                store.await_keys(&shards);
            }
            TransferMessage::End => break,
        }
    }
    store.restore_sessions(SavedSession::read_all(&saved_sessions).ok_or_else(unreadable)?);
    let reservations = PredecessorReservations { slots, guards };
    Ok(ReceivedCounts { store: Arc::clone(store), reservations, sessions, keys_follow })
}

fn count(guards: &[ReservationGuard]) -> u32 {
    u32::try_from(guards.len()).unwrap_or(u32::MAX)
}

fn unreadable() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "the bans, known clients and sessions of the other process cannot be read")
}
