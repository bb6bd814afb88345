//! A takeover as the running gateway sees it: a new process starts, asks for everything, and serves.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::ExitStatus;
use std::sync::Arc;
use std::{future, io, process};

use tokio::sync::oneshot;
use tokio::task;
use tokio::task::JoinHandle;
use tracing::{error, info, warn};

use super::control_socket::TakeoverRequest;
use crate::app::takeover::options::CommandLine;
use crate::app::takeover::wire;
use crate::app::takeover::wire::{FREEZE_TIMEOUT, GREETINGS, Greeting, TAKEOVER_TIMEOUT};
use crate::listen::{ListenAddress, ListeningSocket, SocketFile};
use crate::store::handover::client::SuccessorClient;
use crate::store::handover::message::TransferVersion;
use crate::store::handover::transfer::FrozenCounts;
use crate::store::snapshot::SnapshotWriter;
use crate::store::{MovableStore, snapshot};
use crate::words::clock::Clock;

/// How far the takeover by another process has come.
#[derive(Default)]
pub(in crate::app) struct OutgoingTakeover {
    /// A process that was started here and has not ended: its number, and how it ends.
    started: Option<(u32, oneshot::Receiver<ExitStatus>)>,
    /// A process that is being handed everything.
    handing_over: Option<JoinHandle<io::Result<Successor>>>,
}

impl OutgoingTakeover {
    /// Starts the process that is to take over.
    pub(in crate::app) fn start(&mut self, successor_command: Option<&CommandLine>) {
        let Some(command) = successor_command else {
            return info!("this process cannot be taken over");
        };
        if let Some((process, _)) = &self.started {
            return warn!("process {process} was started to take over and is still starting");
        }
        if !command.is_repeatable() {
            return error!(
                "the configuration came from standard input, which cannot be read again: start `portcullis run -c - \
                 --takeover` with it instead"
            );
        }
        if process::id() == 1 {
            // The end of process 1 is the end of its container, and of the new process with it.
            return error!("process 1 cannot be replaced: start a new container instead");
        }
        match command.start() {
            Ok(started) => {
                info!(process = started.0, "process {} is to take over", started.0);
                self.started = Some(started);
            }
            Err(error) => error!(%error, "cannot start the process that is to take over: {error}; this one goes on"),
        }
    }

    pub(in crate::app) fn is_handing_over(&self) -> bool {
        self.handing_over.is_some()
    }

    pub(in crate::app) fn hand_over(&mut self, request: TakeoverRequest, state: io::Result<HandoverState>) {
        match state {
            Ok(state) => self.handing_over = Some(task::spawn_blocking(move || hand_over(request, &state))),
            Err(error) => error!(%error, "cannot hand over the listening sockets: {error}; this process goes on"),
        }
    }

    /// The process that serves from now on. `None`: a takeover failed, and this process goes on. May be dropped at any
    /// time and called again.
    pub(in crate::app) async fn successor(&mut self) -> Option<Successor> {
        let Self { started, handing_over } = self;
        let failure = tokio::select! {
            handed_over = wait_if_some(handing_over.as_mut()) => {
                *handing_over = None;
                match handed_over.unwrap_or_else(|error| Err(io::Error::other(error))) {
                    Ok(successor) => return Some(successor),
                    Err(error) => format!("the new process was handed the sockets and does not serve: {error}"),
                }
            }
            ended = wait_if_some(started.as_mut().map(|(_, ended)| ended)) => {
                let process = started.take().map_or(0, |(process, _)| process);
                let status = ended.map_or_else(|_| "its exit status is unknown".to_owned(), |status| status.to_string());
                format!("process {process} did not take over: {status}")
            }
        };
        error!("{failure}; this one goes on");
        None
    }
}

/// Waits for the future; for ever where there is none.
async fn wait_if_some<T>(future: Option<&mut (impl Future<Output = T> + Unpin)>) -> T {
    match future {
        Some(future) => future.await,
        None => future::pending().await,
    }
}

// The running gateway's side of a takeover: hands everything to the new process.

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
    let link = match exchange_state(&stream, state)? {
        Some(frozen) => SuccessorLink::Relay(frozen.move_to(stream)?),
        None => SuccessorLink::Lines(stream),
    };
    loan.keep_suspended();
    Ok(Successor { link, process })
}

/// Sends the state to the successor. Returns when the successor serves, or when it asked for the counts, which it owns
/// from then on.
fn exchange_state(stream: &UnixStream, state: &HandoverState) -> io::Result<Option<FrozenCounts>> {
    let greeting = wire::read_line(stream)?;
    let Some(Greeting { counts: version, knows_files, .. }) = GREETINGS.iter().find(|known| known.line == greeting)
    else {
        return Err(wire::protocol_error(&format!("{greeting:?}; is it another version?")));
    };
    for (configured, sockets) in &state.sockets {
        wire::send_line(stream, &format!("sockets {configured} {}", sockets.len()))?;
        for socket in sockets {
            wire::send_descriptor(stream, socket)?;
        }
    }
    for file in state.files.iter().filter(|_| *knows_files) {
        wire::send_line(stream, &format!("file {file}"))?;
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
    fn keep_suspended(mut self) {
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

// The state that a running gateway hands to its successor.

/// The state that a running gateway hands to its successor.
#[derive(Debug)]
pub struct HandoverState {
    /// Each address as it is configured, with the sockets on it.
    pub sockets: Vec<(ListenAddress, Vec<ListeningSocket>)>,
    /// The files of Unix sockets among them, which go with the last process that listens there.
    pub files: Vec<SocketFile>,
    /// Where counts are kept in memory: the store, and the writer of its snapshot.
    pub store: Option<(Arc<MovableStore>, Arc<SnapshotWriter>)>,
    /// The clock that it decides by.
    pub clock: Clock,
}
