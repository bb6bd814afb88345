//! Moves all counts to the successor, and with them the sessions of predecessors that ask this process.

use std::collections::HashMap;
use std::io;
use std::io::ErrorKind;
use std::io::Read;
use std::io::Write;
use std::mem;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use serde::Deserialize;
use serde::Serialize;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::client::SuccessorClient;
use super::frame;
use super::message::HandoverRequest;
use super::paused::PausedSession;
use super::paused::SessionHandle;
use super::reservations::PredecessorReservations;
use crate::key::KeyHash;
use crate::pending_reservations::ReservationGuard;
use crate::store::MemoryStore;
use crate::store::sessions::saved::SavedSession;
use crate::store::snapshot;

/// Counts that are about to move. If this is dropped before they have moved, they stay here and thaw.
#[derive(Debug)]
pub struct FrozenCounts {
    store: Arc<MemoryStore>,
    /// The sessions of predecessors, which move with the counts.
    paused: Vec<PausedSession>,
    /// Runs these sessions again if the counts thaw.
    runtime: Handle,
    has_moved: bool,
}

/// Counts that have arrived, while no reply is sent to their predecessors yet.
#[derive(Debug)]
pub struct ReceivedCounts {
    store: Arc<MemoryStore>,
    /// What the process that sent them has reserved.
    reservations: PredecessorReservations,
    paused: Vec<PausedSession>,
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
}

impl FrozenCounts {
    /// Freezes the counts. Blocks; called on a blocking thread of the runtime that runs the sessions.
    pub fn begin(store: &Arc<MemoryStore>) -> Self {
        let sessions = mem::take(&mut *store.handover().sessions.lock());
        let paused = sessions.into_iter().filter_map(SessionHandle::pause).collect();
        // No predecessor asks any more. Requests of this process wait from here on.
        store.freeze();
        Self { store: Arc::clone(store), paused, runtime: Handle::current(), has_moved: false }
    }

    /// Sends all counts, and the sessions if the other process knows of them; `pass` passes a socket to it.
    pub fn send(
        &self,
        mut stream: &UnixStream,
        with_sessions: bool,
        mut pass: impl FnMut(BorrowedFd<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        send(stream, &TransferMessage::Snapshot(snapshot::export_without_sessions(&self.store)?))?;
        for PausedSession { stream: socket, received, unsent, reservations, .. } in &self.paused {
            let slots = reservations.slots.iter().map(|(key, count)| (*key, *count)).collect();
            let guards = reservations.guards.iter().map(|(key, guards)| (*key, count(guards))).collect();
            let (received, unsent) = (received.clone(), unsent.clone());
            send(stream, &TransferMessage::Session { received, unsent, slots, guards })?;
            pass(socket.as_fd())?;
        }
        self.store.write_keys(|piece| {
            let length = u32::try_from(piece.len()).map_err(io::Error::other)?;
            send(stream, &TransferMessage::Keys { length })?;
            stream.write_all(piece)
        })?;
        if with_sessions {
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

    /// Completes the move: the process at the other end has the counts and is asked from now on.
    pub fn move_to(mut self, stream: UnixStream, with_sessions: bool) -> Arc<SuccessorClient> {
        let client = {
            let _runtime = self.runtime.enter();
            SuccessorClient::begin(stream, self.store.bans(), with_sessions)
        };
        self.has_moved = true;
        self.store.handover().complete_move(Arc::clone(&client));
        self.store.clear();
        client
    }
}

impl Drop for FrozenCounts {
    fn drop(&mut self) {
        if self.has_moved {
            return;
        }
        self.store.thaw();
        let _runtime = self.runtime.enter();
        let resumed = self.paused.drain(..).map(|session| session.resume(&self.store));
        self.store.handover().sessions.lock().extend(resumed);
    }
}

impl ReceivedCounts {
    /// Receives all counts. If they do not arrive completely, none are kept. Blocks.
    pub fn receive(
        store: &Arc<MemoryStore>,
        stream: &UnixStream,
        accept: impl FnMut() -> io::Result<OwnedFd>,
    ) -> io::Result<Self> {
        let received = receive(store, stream, accept);
        if received.is_err() {
            store.clear();
        }
        received
    }

    /// How many keys were received.
    pub fn keys(&self) -> usize {
        self.store.len()
    }

    /// Starts the sessions of all predecessors on the runtime of the caller: of the one at the other end of `stream`,
    /// and of those before it. `draining` is sent when the one at the other end accepts no more connections.
    pub fn begin(self, stream: UnixStream, draining: oneshot::Sender<()>) {
        let Self { store, reservations, mut paused } = self;
        let (received, unsent) = (Vec::new(), Vec::new());
        let bans_mark = store.bans().mark();
        let draining = Some(draining);
        paused.push(PausedSession { stream, received, unsent, reservations, bans_mark, draining });
        let sessions = paused.into_iter().map(|session| session.resume(&store));
        store.handover().sessions.lock().extend(sessions);
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
    frame::push(&mut frame, message);
    stream.write_all(&frame)
}

fn receive(
    store: &Arc<MemoryStore>,
    mut stream: &UnixStream,
    mut accept: impl FnMut() -> io::Result<OwnedFd>,
) -> io::Result<ReceivedCounts> {
    let (mut slots, mut guards) = (HashMap::new(), HashMap::new());
    let mut sessions = Vec::new();
    let mut saved_sessions = Vec::new();
    loop {
        match frame::receive(stream)? {
            TransferMessage::Snapshot(bytes) if snapshot::import_update(&bytes, store) => {}
            TransferMessage::Snapshot(_) => return Err(unreadable()),
            TransferMessage::Session { received, unsent, slots, guards } => {
                sessions.push((UnixStream::from(accept()?), received, unsent, slots, guards));
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
            TransferMessage::End => break,
        }
    }
    store.restore_sessions(&SavedSession::read_all(&saved_sessions).ok_or_else(unreadable)?);
    // The counts of the predecessor include what its own predecessors have reserved.
    let mut reservations = PredecessorReservations { slots, guards };
    let paused = sessions.into_iter().map(|(stream, received, unsent, slots, guards)| {
        let reservations = reservations.split_off(&slots, &guards);
        PausedSession { stream, received, unsent, reservations, bans_mark: 0, draining: None }
    });
    let paused = paused.collect();
    Ok(ReceivedCounts { store: Arc::clone(store), reservations, paused })
}

fn count(guards: &[ReservationGuard]) -> u32 {
    u32::try_from(guards.len()).unwrap_or(u32::MAX)
}

fn unreadable() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "the bans, known clients and sessions of the other process cannot be read")
}

/// Sessions are sent in pieces of this many bytes.
const SESSIONS_PIECE: usize = 1 << 20;
