//! The running gateway's side of a takeover: hands everything to the new process.

use std::io;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use tracing::warn;

use super::control_socket::TakeoverRequest;
use super::handover_state::HandoverState;
use super::protocol::FREEZE_TIMEOUT;
use super::protocol::GREETINGS;
use super::protocol::TAKEOVER_TIMEOUT;
use super::wire;
use crate::store::handover::client::SuccessorClient;
use crate::store::handover::transfer::FrozenCounts;
use crate::store::handover::version::TransferVersion;
use crate::store::snapshot;
use crate::store::snapshot::SnapshotWriter;

/// The process that serves from now on. It waits for the word that this one drains.
#[derive(Debug)]
pub struct Successor {
    link: SuccessorLink,
    /// Its number, where this process can see it.
    pub process: Option<u32>,
}

/// How this process talks to its successor.
#[derive(Debug)]
enum SuccessorLink {
    Lines(UnixStream),
    /// The successor has the counts, and this process asks it for decisions.
    Relay(Arc<SuccessorClient>),
}

impl Successor {
    /// Tells the successor that this process accepts nothing more.
    pub fn say_draining(self) {
        match self.link {
            // The successor serves even if this fails.
            SuccessorLink::Lines(stream) => drop(wire::send_line(&stream, "draining")),
            SuccessorLink::Relay(relay) => relay.announce_draining(),
        }
    }
}

/// Hands everything over, and returns when the successor serves. Blocks; to be called within the runtime of the gateway,
/// on another thread. After an error this gateway is as it was.
pub fn hand_over(request: TakeoverRequest, state: &HandoverState) -> io::Result<Successor> {
    let TakeoverRequest { stream, process } = request;
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(TAKEOVER_TIMEOUT))?;
    stream.set_write_timeout(Some(TAKEOVER_TIMEOUT))?;
    let loan = SnapshotWriterLoan(state.store.as_ref().map(|(_, snapshot_writer)| Arc::clone(snapshot_writer)));
    let link = match converse(&stream, state)? {
        Some(frozen) => SuccessorLink::Relay(frozen.move_to(stream)?),
        None => SuccessorLink::Lines(stream),
    };
    loan.give_away();
    Ok(Successor { link, process })
}

/// Returns when the successor serves, or is to serve with the counts that are its own from now on if it asked for them.
fn converse(stream: &UnixStream, state: &HandoverState) -> io::Result<Option<FrozenCounts>> {
    let greeting = wire::read_line(stream)?;
    let Some((_, version)) = GREETINGS.iter().find(|(known, _)| *known == greeting) else {
        return Err(wire::protocol_error(&format!("{greeting:?}; is it another version?")));
    };
    for (configured, sockets) in &state.sockets {
        wire::send_line(stream, &format!("sockets {configured} {}", sockets.len()))?;
        for socket in sockets {
            wire::send_descriptor(stream, socket)?;
        }
    }
    if version.is_some() {
        wire::send_line(stream, &format!("clock {}", state.clock.now().as_micros()))?;
    }
    wire::send_line(stream, "end")?;
    loop {
        match (&*wire::read_line(stream)?, *version) {
            ("state", _) => send_state(stream, state)?,
            ("counts", Some(version)) => return send_counts(stream, state, version).map(Some),
            ("serving", _) => {
                if version.is_none() && state.store.is_some() {
                    warn!("the new process is of another version: its counts begin anew");
                }
                return Ok(None);
            }
            (other, _) => return Err(wire::protocol_error(&format!("{other:?}"))),
        }
    }
}

fn send_state(mut stream: &UnixStream, state: &HandoverState) -> io::Result<()> {
    let bytes = match &state.store {
        Some((store, snapshot_writer)) => {
            snapshot_writer.suspend();
            snapshot::export(store)?
        }
        None => Vec::new(),
    };
    wire::send_line(stream, &format!("state {}", bytes.len()))?;
    stream.write_all(&bytes)
}

/// From here on this process decides nothing until it is known which of the two goes on with the counts. This process
/// decides that, once: `yours`, or `mine`.
fn send_counts(stream: &UnixStream, state: &HandoverState, version: TransferVersion) -> io::Result<FrozenCounts> {
    let Some((store, _)) = &state.store else {
        return Err(wire::protocol_error("it asks for counts that are not here"));
    };
    stream.set_read_timeout(Some(FREEZE_TIMEOUT))?;
    stream.set_write_timeout(Some(FREEZE_TIMEOUT))?;
    let frozen = FrozenCounts::begin(store, version);
    let sent = frozen.send(stream, |socket| wire::send_descriptor(stream, socket));
    let answered = sent.and_then(|()| match &*wire::read_line(stream)? {
        "serving" => wire::send_line(stream, "yours"),
        other => Err(wire::protocol_error(&format!("{other:?}"))),
    });
    match answered {
        Ok(()) => Ok(frozen),
        Err(error) => {
            // Without this line the new process would take the end of the connection for the end of this process.
            drop(wire::send_line(stream, "mine"));
            Err(error)
        }
    }
}

/// The right to write the snapshot. It comes back when the successor does not serve.
struct SnapshotWriterLoan(Option<Arc<SnapshotWriter>>);

impl SnapshotWriterLoan {
    fn give_away(mut self) {
        if let Some(snapshot_writer) = self.0.take() {
            snapshot_writer.suspend();
        }
    }
}

impl Drop for SnapshotWriterLoan {
    fn drop(&mut self) {
        if let Some(snapshot_writer) = &self.0 {
            snapshot_writer.resume();
        }
    }
}
