//! The side of the running gateway.

use std::io;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use tracing::warn;

use super::FREEZE;
use super::GREETING;
use super::GREETING_OF_BEFORE;
use super::Heir;
use super::Offer;
use super::PATIENCE;
use super::wire;
use crate::store::handover::client::SuccessorClient;
use crate::store::handover::transfer::FrozenCounts;
use crate::store::snapshot;
use crate::store::snapshot::SnapshotWriter;

/// The process that serves from now on, and waits to be told that this one drains.
#[derive(Debug)]
pub struct Successor {
    way: Way,
    /// Its number, where this process can see it.
    pub process: Option<u32>,
}

/// How the successor is spoken to.
#[derive(Debug)]
enum Way {
    Lines(UnixStream),
    /// It has the counts.
    Relay(Arc<SuccessorClient>),
}

impl Successor {
    /// Tells it that this process accepts nothing more.
    pub fn dismiss(self) {
        match self.way {
            // It serves either way.
            Way::Lines(stream) => drop(wire::say(&stream, "draining")),
            Way::Relay(relay) => relay.announce_draining(),
        }
    }
}

/// Hands everything over, and returns when the heir serves. Blocks; to be called within the runtime of the gateway, on
/// another thread. After an error this gateway is as it was.
pub fn hand_over(heir: Heir, offer: &Offer) -> io::Result<Successor> {
    let Heir { stream, process } = heir;
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let lent = Lent(offer.store.as_ref().map(|(_, snapshot_writer)| Arc::clone(snapshot_writer)));
    let way = match converse(&stream, offer)? {
        Some(frozen) => Way::Relay(frozen.move_to(stream)),
        None => Way::Lines(stream),
    };
    lent.for_good();
    Ok(Successor { way, process })
}

/// Returns when the heir serves, with the counts that are its own from now on, if it asked for them.
fn converse(stream: &UnixStream, offer: &Offer) -> io::Result<Option<FrozenCounts>> {
    let greeting = wire::hear(stream)?;
    let is_current = greeting == GREETING;
    if !is_current && greeting != GREETING_OF_BEFORE {
        return Err(wire::nonsense(&format!("{greeting:?}; is it another version?")));
    }
    for (configured, sockets) in &offer.sockets {
        wire::say(stream, &format!("sockets {configured} {}", sockets.len()))?;
        for socket in sockets {
            wire::pass(stream, socket)?;
        }
    }
    if is_current {
        wire::say(stream, &format!("clock {}", offer.clock.now().as_micros()))?;
    }
    wire::say(stream, "end")?;
    loop {
        match &*wire::hear(stream)? {
            "state" => give_state(stream, offer)?,
            "counts" if is_current => return give_counts(stream, offer).map(Some),
            "serving" => {
                if !is_current && offer.store.is_some() {
                    warn!("the new process is of another version: its counts begin anew");
                }
                return Ok(None);
            }
            other => return Err(wire::nonsense(&format!("{other:?}"))),
        }
    }
}

fn give_state(mut stream: &UnixStream, offer: &Offer) -> io::Result<()> {
    let state = match &offer.store {
        Some((store, snapshot_writer)) => {
            snapshot_writer.suspend();
            snapshot::export(store)?
        }
        None => Vec::new(),
    };
    wire::say(stream, &format!("state {}", state.len()))?;
    stream.write_all(&state)
}

/// From here on nothing is decided in this process, until it is known which of the two goes on with the counts. That is
/// said here, once: `yours`, or `mine`.
fn give_counts(stream: &UnixStream, offer: &Offer) -> io::Result<FrozenCounts> {
    let Some((store, _)) = &offer.store else { return Err(wire::nonsense("it asks for counts that are not here")) };
    stream.set_read_timeout(Some(FREEZE))?;
    stream.set_write_timeout(Some(FREEZE))?;
    let frozen = FrozenCounts::begin(store);
    let sent = frozen.send(stream, |socket| wire::pass(stream, socket));
    let heard = sent.and_then(|()| match &*wire::hear(stream)? {
        "serving" => wire::say(stream, "yours"),
        other => Err(wire::nonsense(&format!("{other:?}"))),
    });
    match heard {
        Ok(()) => Ok(frozen),
        Err(error) => {
            // Whoever is still there does not take the end of this for the end of this process.
            drop(wire::say(stream, "mine"));
            Err(error)
        }
    }
}

/// The right to write the state, which comes back when it is not needed elsewhere after all.
struct Lent(Option<Arc<SnapshotWriter>>);

impl Lent {
    fn for_good(mut self) {
        if let Some(snapshot_writer) = self.0.take() {
            snapshot_writer.suspend();
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(snapshot_writer) = &self.0 {
            snapshot_writer.resume();
        }
    }
}
