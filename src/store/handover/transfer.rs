//! How the counts move: all of them, and with them the predecessors that ask this process.

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
use super::message::Question;
use super::session::Held;
use super::session::Parked;
use crate::decision::ticket::Ticket;
use crate::key::KeyHash;
use crate::store::MemoryStore;
use crate::store::snapshot;

/// Counts that are about to move. They stay where they are, and thaw, when this is dropped before they have.
#[derive(Debug)]
pub struct FrozenCounts {
    store: Arc<MemoryStore>,
    /// Those that ask this process, and are to ask the next one.
    parked: Vec<Parked>,
    /// Who answers them, should it come to that.
    runtime: Handle,
    has_moved: bool,
}

/// Counts that have come, and whose predecessors are not being answered yet.
#[derive(Debug)]
pub struct ReceivedCounts {
    store: Arc<MemoryStore>,
    /// What the process holds that they came from.
    held: Held,
    parked: Vec<Parked>,
}

/// What is sent, in this order; the keys in several pieces.
#[derive(Debug, Deserialize, Serialize)]
enum Part {
    /// Bans and known clients, as a snapshot has them.
    Known(Vec<u8>),
    /// A predecessor of the predecessor. Its socket follows.
    Session {
        received: Vec<u8>,
        unsent: Vec<u8>,
        slots: Vec<(KeyHash, u32)>,
        tickets: Vec<(KeyHash, u32)>,
    },
    /// So many bytes of keys follow.
    Keys {
        length: u32,
    },
    /// Reservations that wait for their outcome: of which key, how many, and how often it was reset before.
    Waiting(Vec<(KeyHash, u32, u32)>),
    End,
}

impl FrozenCounts {
    /// Freezes the counts. Blocks; to be called within the runtime that answers predecessors, on another thread.
    pub fn begin(store: &Arc<MemoryStore>) -> Self {
        let sessions = mem::take(&mut *store.handover().sessions.lock());
        let parked = sessions.into_iter().filter_map(super::session::Parking::park).collect();
        // Nobody asks any more from outside: what the others ask from here on waits.
        store.freeze();
        Self { store: Arc::clone(store), parked, runtime: Handle::current(), has_moved: false }
    }

    /// Sends all of them; `pass` hands a socket over.
    pub fn send(
        &self,
        mut stream: &UnixStream,
        mut pass: impl FnMut(BorrowedFd<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        send(stream, &Part::Known(snapshot::export(&self.store)?))?;
        for Parked { stream: socket, received, unsent, held, .. } in &self.parked {
            let slots = held.slots.iter().map(|(key, count)| (*key, *count)).collect();
            let tickets = held.tickets.iter().map(|(key, tickets)| (*key, count(tickets))).collect();
            let (received, unsent) = (received.clone(), unsent.clone());
            send(stream, &Part::Session { received, unsent, slots, tickets })?;
            pass(socket.as_fd())?;
        }
        self.store.write_keys(|piece| {
            let length = u32::try_from(piece.len()).map_err(io::Error::other)?;
            send(stream, &Part::Keys { length })?;
            stream.write_all(piece)
        })?;
        send(stream, &Part::Waiting(self.store.unsettled().all()))?;
        send(stream, &Part::End)
    }

    /// The counts are those of the process at the other end, which is asked from here on. Nothing is counted here again.
    pub fn move_to(mut self, stream: UnixStream) -> Arc<SuccessorClient> {
        let client = {
            let _runtime = self.runtime.enter();
            SuccessorClient::begin(stream, self.store.bans())
        };
        self.has_moved = true;
        self.store.handover().end_there(Arc::clone(&client));
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
        let resumed = self.parked.drain(..).map(|parked| parked.resume(&self.store));
        self.store.handover().sessions.lock().extend(resumed);
    }
}

impl ReceivedCounts {
    /// Takes in everything that is sent. Where it does not come whole, nothing was. Blocks.
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

    /// How many keys there are.
    pub fn keys(&self) -> usize {
        self.store.len()
    }

    /// Answers all predecessors from here on, on the runtime of the caller: the one at the other end of this, which says
    /// `draining` when it accepts no more connections, and those before it.
    pub fn begin(self, stream: UnixStream, draining: oneshot::Sender<()>) {
        let Self { store, held, mut parked } = self;
        let (received, unsent) = (Vec::new(), Vec::new());
        let bans = store.bans().mark();
        parked.push(Parked { stream, received, unsent, held, bans, draining: Some(draining) });
        let sessions = parked.into_iter().map(|parked| parked.resume(&store));
        store.handover().sessions.lock().extend(sessions);
    }
}

impl SuccessorClient {
    /// This process accepts no more connections.
    pub fn announce_draining(&self) {
        self.tell(Question::Draining);
    }
}

fn send(mut stream: &UnixStream, part: &Part) -> io::Result<()> {
    let mut frame = Vec::new();
    frame::push(&mut frame, part);
    stream.write_all(&frame)
}

fn receive(
    store: &Arc<MemoryStore>,
    mut stream: &UnixStream,
    mut accept: impl FnMut() -> io::Result<OwnedFd>,
) -> io::Result<ReceivedCounts> {
    let (mut slots, mut tickets) = (HashMap::new(), HashMap::new());
    let mut sessions = Vec::new();
    loop {
        match frame::receive(stream)? {
            Part::Known(known) if snapshot::import_update(&known, store) => {}
            Part::Known(_) => return Err(damaged()),
            Part::Session { received, unsent, slots, tickets } => {
                sessions.push((UnixStream::from(accept()?), received, unsent, slots, tickets));
            }
            Part::Keys { length } => {
                let mut piece = vec![0; length as usize];
                stream.read_exact(&mut piece)?;
                store.read_keys(&piece, &mut slots)?;
            }
            Part::Waiting(waiting) => {
                let taken = waiting.into_iter();
                tickets
                    .extend(taken.map(|(key, count, resets)| (key, store.unsettled().take_over(key, count, resets))));
            }
            Part::End => break,
        }
    }
    // What those before it hold is among what the predecessor counted, and is not its own.
    let mut held = Held { slots, tickets };
    let parked = sessions.into_iter().map(|(stream, received, unsent, slots, tickets)| {
        let held = held.part(&slots, &tickets);
        Parked { stream, received, unsent, held, bans: 0, draining: None }
    });
    let parked = parked.collect();
    Ok(ReceivedCounts { store: Arc::clone(store), held, parked })
}

impl Held {
    /// Takes so much out of it.
    fn part(&mut self, slots: &[(KeyHash, u32)], tickets: &[(KeyHash, u32)]) -> Self {
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
        for (key, count) in tickets {
            if let Some(all) = self.tickets.get_mut(key) {
                let left = all.len().saturating_sub(*count as usize);
                part.tickets.insert(*key, all.split_off(left));
            }
        }
        self.tickets.retain(|_, tickets| !tickets.is_empty());
        part
    }
}

fn count(tickets: &[Ticket]) -> u32 {
    u32::try_from(tickets.len()).unwrap_or(u32::MAX)
}

fn damaged() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "bans and known clients that cannot be read")
}
