//! The new process's side of a takeover: finds the running gateway, and takes its sockets and counts.

use std::io;
use std::io::{ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::geteuid;
use tokio::sync::oneshot;
use tokio::task;
use tokio::time::timeout;
use tracing::{info, warn};

use super::wire;
use crate::app::sockets::InheritedSockets;
use crate::app::takeover::control_socket;
use crate::app::takeover::wire::{GREETINGS, TAKEOVER_TIMEOUT};
use crate::listen::ListenAddress;
use crate::store::handover::moving_keys::Arrival;
use crate::store::handover::transfer::ReceivedCounts;
use crate::store::{AnyStore, MovableStore};
use crate::words::clock::{Clock, Timestamp};
use crate::words::units::counted;

/// The gateway that still serves. It waits for this process to serve.
#[derive(Debug)]
pub struct Predecessor {
    stream: UnixStream,
    /// Its control socket.
    path: PathBuf,
    /// Its time; `None`: it is of an older version.
    clock: Option<Clock>,
    /// Both processes hash keys with the same secret, so that counts can be taken over.
    pub(in crate::app) shares_hash_keys: bool,
}

/// A gateway that serves beside this process until it drains.
#[derive(Debug)]
pub(in crate::app) enum LeavingPredecessor {
    /// It keeps its counts, and waits for the line that this process serves.
    WithCounts(Predecessor),
    /// It gives its counts away.
    WithoutCounts(GivenCounts),
}

/// Counts that a gateway gives to this process.
#[derive(Debug)]
pub(in crate::app) struct GivenCounts {
    /// `None`: that gateway is gone.
    arrival: Option<Arrival>,
    /// The control socket of that gateway.
    path: PathBuf,
    /// Gets a value when it drains.
    draining: oneshot::Receiver<()>,
}

impl Predecessor {
    /// Finds the running gateway under one of these names and gets its listening sockets. `None`: there is none.
    ///
    /// To be called on a runtime.
    pub async fn find(names: &[String]) -> io::Result<Option<(Self, InheritedSockets)>> {
        for directory in control_socket::directories() {
            if control_socket::check(&directory).is_err() {
                continue;
            }
            for name in names {
                let path = directory.join(name);
                if let Some(connection) = connect(&path).await? {
                    return Self::greet(connection, path).await;
                }
            }
        }
        Ok(None)
    }

    async fn greet(
        (mut stream, mut process): PeerConnection,
        path: PathBuf,
    ) -> io::Result<Option<(Self, InheritedSockets)>> {
        let mut version = 0;
        let (stream, (sockets, clock)) = loop {
            let greeting = send_greeting(stream, GREETINGS[version].line);
            let (greeted_on, answer) = said_where_slow(greeting, process).await?;
            match answer {
                Ok(received) => break (greeted_on, received),
                // It closed the connection without an answer.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof && version + 1 < GREETINGS.len() => {
                    let Some((next, next_process)) = connect(&path).await? else { return Ok(None) };
                    // The same process answers again: it knows an older greeting alone. Another process answers: the
                    // first one was ending.
                    if next_process == process {
                        version += 1;
                    }
                    (stream, process) = (next, next_process);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let within = TAKEOVER_TIMEOUT.as_secs();
                    let gateway = named(process);
                    let error = format!("{gateway} has not answered within {within} s, as one that is stopped");
                    return Err(io::Error::new(ErrorKind::TimedOut, error));
                }
                Err(error) => return Err(error),
            }
        };
        Ok(Some((Self { stream, path, clock, shares_hash_keys: false }, sockets)))
    }

    /// The clock to go on with.
    pub(in crate::app) fn clock(&self) -> Option<&Clock> {
        self.clock.as_ref()
    }

    /// Its bans and known clients, for [`import`](crate::store::snapshot::import); empty where it does not count in
    /// memory. From here on it writes no snapshot to disk.
    pub(in crate::app) fn state(&self) -> io::Result<Vec<u8>> {
        wire::send_line(&self.stream, "state")?;
        let answer = wire::read_line(&self.stream)?;
        let length = answer.strip_prefix("state ").and_then(|length| length.parse().ok());
        let length: usize = length.ok_or_else(|| wire::protocol_error(&format!("{answer:?}")))?;
        let mut state = Vec::new();
        (&self.stream).take(length as u64).read_to_end(&mut state)?;
        if state.len() == length { Ok(state) } else { Err(ErrorKind::UnexpectedEof.into()) }
    }

    /// Takes the counts over, where both processes count in memory. From then on this process decides, and the
    /// predecessor asks it. Fails where the predecessor goes on with the counts. Keys may still arrive afterwards, see
    /// [`LeavingPredecessor::all_arrived`].
    ///
    /// To be called on the runtime that answers the predecessor.
    pub(in crate::app) async fn take_counts(self, store: &AnyStore) -> io::Result<LeavingPredecessor> {
        let AnyStore::Memory(store) = store else { return Ok(LeavingPredecessor::WithCounts(self)) };
        if self.clock.is_none() {
            warn!("the running gateway is of an older version: counts begin anew");
        }
        if self.clock.is_none() || !self.shares_hash_keys {
            return Ok(LeavingPredecessor::WithCounts(self));
        }
        let store = Arc::clone(store);
        let path = self.path.clone();
        let receiving = task::spawn_blocking(move || self.receive_counts(&store));
        let error = match receiving.await.map_err(io::Error::other)? {
            Ok((received, stream)) => {
                let (sender, draining) = oneshot::channel();
                let arrival = Some(received.begin(stream, sender));
                return Ok(LeavingPredecessor::WithoutCounts(GivenCounts { arrival, path, draining }));
            }
            Err(error) => error,
        };
        if connect(&path).await?.is_some() {
            return Err(error);
        }
        // The predecessor has ended and cannot go on with the counts either.
        warn!(%error, "the running gateway is gone: counts begin anew: {error}");
        let draining = oneshot::channel().1;
        Ok(LeavingPredecessor::WithoutCounts(GivenCounts { arrival: None, path, draining }))
    }

    fn receive_counts(self, store: &Arc<MovableStore>) -> io::Result<(ReceivedCounts, UnixStream)> {
        let Self { stream, .. } = self;
        wire::send_line(&stream, "counts")?;
        let received = ReceivedCounts::receive(store, &stream, || wire::receive_descriptor(&stream))?;
        let sent = wire::send_line(&stream, "serving");
        match wire::read_line(&stream) {
            Ok(answer) if answer == "yours" => Ok((received, stream)),
            Ok(_) => Err(io::Error::other("it goes on by itself, as this process was too slow")),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Err(error),
            // It has ended without an answer, whether or not it read the line: this process alone has the counts.
            Err(error) => {
                let error = sent.err().unwrap_or(error);
                info!(%error, "the running gateway is gone, its counts are here: {error}");
                Ok((received, stream))
            }
        }
    }
}

impl LeavingPredecessor {
    /// Returns when this process has all keys, so that it may serve. Fails if the predecessor keeps the rest of the
    /// keys and serves on.
    ///
    /// The caller must not give up: keys that have arrived are in this process only.
    pub(in crate::app) async fn all_arrived(&mut self, store: &AnyStore) -> io::Result<()> {
        let (Self::WithoutCounts(given), AnyStore::Memory(store)) = (self, store) else { return Ok(()) };
        let Some(arrival) = given.arrival.take() else { return Ok(()) };
        let arrived = arrival.complete(TAKEOVER_TIMEOUT).await;
        let keys = store.len();
        match arrived {
            Ok(()) => info!(keys, "the counts of {} were taken over", counted(keys, "key")),
            Err(error) if connect(&given.path).await?.is_some() => return Err(error),
            Err(error) => {
                let arrived = counted(keys, "key");
                warn!(%error, keys, "the running gateway is gone: the counts of {arrived} are here, others begin anew: {error}");
            }
        }
        Ok(())
    }

    /// Tells it that this process serves, and returns when it has stopped accepting.
    pub(in crate::app) async fn wait_until_draining(self) -> io::Result<()> {
        match self {
            Self::WithCounts(Predecessor { stream, .. }) => {
                wire::send_line(&stream, "serving")?;
                match &*wire::read_line(&stream)? {
                    "draining" => Ok(()),
                    other => Err(wire::protocol_error(&format!("{other:?}"))),
                }
            }
            Self::WithoutCounts(GivenCounts { draining, .. }) => {
                timeout(TAKEOVER_TIMEOUT, draining).await?.map_err(|_| ErrorKind::UnexpectedEof.into())
            }
        }
    }
}

/// A connection to a gateway, and its process number where this process can see it.
type PeerConnection = (UnixStream, Option<i32>);

/// `None`: no process listens there.
async fn connect(path: &Path) -> io::Result<Option<PeerConnection>> {
    let stream = match tokio::net::UnixStream::connect(path).await {
        Ok(stream) => stream,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let peer = stream.peer_cred()?;
    if peer.uid() != geteuid().as_raw() {
        return Err(io::Error::new(ErrorKind::PermissionDenied, "it runs as another user"));
    }
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(TAKEOVER_TIMEOUT))?;
    stream.set_write_timeout(Some(TAKEOVER_TIMEOUT))?;
    Ok(Some((stream, peer.pid())))
}

/// A gateway usually answers at once. One that is stopped answers never.
const USUAL_ANSWER: Duration = Duration::from_secs(2);

/// Waits for the answer of the running gateway, and says so where that takes long.
async fn said_where_slow<T>(answer: impl Future<Output = T>, process: Option<i32>) -> T {
    let mut answer = pin!(answer);
    if let Ok(answered) = timeout(USUAL_ANSWER, &mut answer).await {
        return answered;
    }
    let (gateway, patience) = (named(process), TAKEOVER_TIMEOUT.as_secs());
    warn!(
        "{gateway} does not answer this process, which is to take over: it may be stopped; {patience} s at most are waited"
    );
    answer.await
}

/// `the running gateway (process 17)`
fn named(process: Option<i32>) -> String {
    let number = process.map(|process| format!(" (process {process})")).unwrap_or_default();
    format!("the running gateway{number}")
}

fn is_absent(error: &io::Error) -> bool {
    // A path that is too long for a socket is invalid input.
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::InvalidInput)
}

/// The answer of a gateway to the greeting.
type GreetingAnswer = (InheritedSockets, Option<Clock>);

/// The outer error is of this process; the inner one is of the conversation.
async fn send_greeting(
    stream: UnixStream,
    greeting: &'static str,
) -> io::Result<(UnixStream, io::Result<GreetingAnswer>)> {
    let blocking = task::spawn_blocking(move || {
        let answer = receive_sockets(&stream, greeting);
        (stream, answer)
    });
    blocking.await.map_err(io::Error::other)
}

fn receive_sockets(stream: &UnixStream, greeting: &str) -> io::Result<GreetingAnswer> {
    wire::send_line(stream, greeting)?;
    let (mut inherited, mut clock) = (InheritedSockets::default(), None);
    loop {
        let line = wire::read_line(stream)?;
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        // The path of a Unix socket may have spaces.
        match (word, rest.rsplit_once(' ')) {
            ("end", None) if rest.is_empty() => return Ok((inherited, clock)),
            ("clock", None) => {
                let shown = rest.parse().map_err(|_| wire::protocol_error(&format!("{line:?}")))?;
                clock = Some(Clock::from(Timestamp::from_micros(shown)));
            }
            ("file", Some(_)) => {
                let file = rest.parse().map_err(|_| wire::protocol_error(&format!("{line:?}")))?;
                inherited.add_file(file);
            }
            ("sockets", Some((address, count))) => {
                let parsed: (Result<ListenAddress, _>, Result<usize, _>) = (address.parse(), count.parse());
                let (Ok(configured), Ok(count)) = parsed else {
                    return Err(wire::protocol_error(&format!("{line:?}")));
                };
                for _ in 0..count {
                    inherited.add(Some(configured.clone()), wire::receive_descriptor(stream)?);
                }
            }
            _ => return Err(wire::protocol_error(&format!("{line:?}"))),
        }
    }
}

// The state that a new process takes over from its predecessor.

/// The state that a new process takes over from its predecessor.
#[derive(Debug, Default)]
pub struct InheritedState {
    pub sockets: InheritedSockets,
    /// The gateway that serves until this one does.
    pub predecessor: Option<Predecessor>,
    /// The connection to the predecessor once this process serves.
    pub(in crate::app) leaving: Option<LeavingPredecessor>,
}
