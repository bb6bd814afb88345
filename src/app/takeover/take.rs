//! The side of the process that takes over.

use std::io;
use std::io::ErrorKind;
use std::io::Read;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::process::geteuid;
use tokio::sync::oneshot;
use tokio::task;
use tokio::time::timeout;
use tracing::info;
use tracing::warn;

use super::GREETING;
use super::GREETING_OF_BEFORE;
use super::PATIENCE;
use super::place;
use super::wire;
use crate::app::sockets::Inherited;
use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::store::AnyStore;
use crate::store::MemoryStore;
use crate::store::handover::transfer::ReceivedCounts;

/// The gateway that has served until now, waiting for this process to serve.
#[derive(Debug)]
pub struct Predecessor {
    stream: UnixStream,
    /// Its hatch.
    path: PathBuf,
    /// What time it is there; `None`: it is of an older version.
    clock: Option<Clock>,
    /// Keys are hashed here as they are there, so that counts mean the same.
    pub(in crate::app) counts_alike: bool,
}

/// A gateway that serves beside this process until it drains.
#[derive(Debug)]
pub(in crate::app) enum Leaving {
    /// It waits to be told that this process serves.
    Lines(Predecessor),
    /// It knows, counts here, and says when it drains.
    Told(oneshot::Receiver<()>),
}

impl Predecessor {
    /// Finds the running gateway of one of these names and gets its listening sockets. `None`: there is none.
    ///
    /// To be called on a runtime.
    pub async fn find(names: &[String]) -> io::Result<Option<(Self, Inherited)>> {
        for directory in place::directories() {
            if place::check(&directory).is_err() {
                continue;
            }
            for name in names {
                let path = directory.join(name);
                if let Some(met) = connect(&path).await? {
                    return Self::meet(met, path).await;
                }
            }
        }
        Ok(None)
    }

    async fn meet((mut stream, mut process): Met, path: PathBuf) -> io::Result<Option<(Self, Inherited)>> {
        let mut greeting = GREETING;
        let (stream, (inherited, clock)) = loop {
            let (greeted_on, greeted) = greet(stream, greeting).await?;
            match greeted {
                Ok(got) => break (greeted_on, got),
                // It closed the door without a word.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof && greeting == GREETING => {
                    let Some((next, of)) = connect(&path).await? else { return Ok(None) };
                    // The same process does so that knows the older greeting alone, another one was on its way out.
                    if of == process {
                        greeting = GREETING_OF_BEFORE;
                    }
                    (stream, process) = (next, of);
                }
                Err(error) => return Err(error),
            }
        };
        Ok(Some((Self { stream, path, clock, counts_alike: false }, inherited)))
    }

    /// The clock to go on with.
    pub(in crate::app) fn clock(&self) -> Option<&Clock> {
        self.clock.as_ref()
    }

    /// What it knows, for [`import`](crate::store::snapshot::import); empty where it does not count in memory. It
    /// keeps nothing on disk from here on.
    pub(in crate::app) fn state(&self) -> io::Result<Vec<u8>> {
        wire::say(&self.stream, "state")?;
        let answer = wire::hear(&self.stream)?;
        let length = answer.strip_prefix("state ").and_then(|length| length.parse().ok());
        let length: usize = length.ok_or_else(|| wire::nonsense(&format!("{answer:?}")))?;
        let mut state = Vec::new();
        (&self.stream).take(length as u64).read_to_end(&mut state)?;
        if state.len() == length { Ok(state) } else { Err(ErrorKind::UnexpectedEof.into()) }
    }

    /// Takes the counts over, where both count in memory: from then on they are this process's to keep, and those of
    /// before ask it. Fails where the gateway of before goes on with them.
    ///
    /// To be called on the runtime that answers those.
    pub(in crate::app) async fn hand_on(self, store: &AnyStore) -> io::Result<Leaving> {
        let AnyStore::Memory(store) = store else { return Ok(Leaving::Lines(self)) };
        if self.clock.is_none() {
            warn!("the running gateway is of an older version: counts begin anew");
        }
        if self.clock.is_none() || !self.counts_alike {
            return Ok(Leaving::Lines(self));
        }
        let store = Arc::clone(store);
        let path = self.path.clone();
        let taking = task::spawn_blocking(move || self.receive(&store));
        let error = match taking.await.map_err(io::Error::other)? {
            Ok((received, stream)) => {
                let keys = received.keys();
                let (say, draining) = oneshot::channel();
                received.begin(stream, say);
                info!(keys, "the counts of {keys} keys were taken over");
                return Ok(Leaving::Told(draining));
            }
            Err(error) => error,
        };
        if connect(&path).await?.is_some() {
            return Err(error);
        }
        // Nobody is there any more who could go on.
        warn!(%error, "the running gateway is gone: counts begin anew: {error}");
        Ok(Leaving::Told(oneshot::channel().1))
    }

    fn receive(self, store: &Arc<MemoryStore>) -> io::Result<(ReceivedCounts, UnixStream)> {
        let Self { stream, .. } = self;
        wire::say(&stream, "counts")?;
        let received = ReceivedCounts::receive(store, &stream, || wire::receive(&stream))?;
        let said = wire::say(&stream, "serving");
        match wire::hear(&stream) {
            Ok(answer) if answer == "yours" => Ok((received, stream)),
            Ok(_) => Err(io::Error::other("it goes on by itself, as this process was too slow")),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Err(error),
            // It has ended without a word, whether or not it heard that: nobody else has the counts.
            Err(error) => {
                let error = said.err().unwrap_or(error);
                info!(%error, "the running gateway is gone, its counts are here: {error}");
                Ok((received, stream))
            }
        }
    }
}

impl Leaving {
    /// Returns when it has stopped accepting, told that this process serves.
    pub(in crate::app) async fn relieve(self) -> io::Result<()> {
        match self {
            Self::Lines(Predecessor { stream, .. }) => {
                wire::say(&stream, "serving")?;
                match &*wire::hear(&stream)? {
                    "draining" => Ok(()),
                    other => Err(wire::nonsense(&format!("{other:?}"))),
                }
            }
            Self::Told(draining) => timeout(PATIENCE, draining).await?.map_err(|_| ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// The way to a gateway, and its number where this process can see it.
type Met = (UnixStream, Option<i32>);

/// `None`: nobody listens there.
async fn connect(path: &Path) -> io::Result<Option<Met>> {
    let stream = match tokio::net::UnixStream::connect(path).await {
        Ok(stream) => stream,
        Err(error) if is_nobody(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let peer = stream.peer_cred()?;
    if peer.uid() != geteuid().as_raw() {
        return Err(io::Error::new(ErrorKind::PermissionDenied, "it runs as another user"));
    }
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(Some((stream, peer.pid())))
}

fn is_nobody(error: &io::Error) -> bool {
    // A name that is too long for a socket is no valid input.
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::InvalidInput)
}

/// What a gateway hands over first.
type Greeted = (Inherited, Option<Clock>);

/// Fails where it was not understood, with the stream otherwise.
async fn greet(stream: UnixStream, greeting: &'static str) -> io::Result<(UnixStream, io::Result<Greeted>)> {
    let spoken = task::spawn_blocking(move || {
        let greeted = inherit(&stream, greeting);
        (stream, greeted)
    });
    spoken.await.map_err(io::Error::other)
}

fn inherit(stream: &UnixStream, greeting: &str) -> io::Result<Greeted> {
    wire::say(stream, greeting)?;
    let (mut inherited, mut clock) = (Inherited::default(), None);
    loop {
        let line = wire::hear(stream)?;
        let mut words = line.split(' ');
        match (words.next(), words.next(), words.next()) {
            (Some("end"), None, None) => return Ok((inherited, clock)),
            (Some("clock"), Some(shown), None) => {
                let shown = shown.parse().map_err(|_| wire::nonsense(&format!("{line:?}")))?;
                clock = Some(Clock::from(Timestamp::from_micros(shown)));
            }
            (Some("sockets"), Some(address), Some(count)) => {
                let read: (Result<SocketAddr, _>, Result<usize, _>) = (address.parse(), count.parse());
                let (Ok(configured), Ok(count)) = read else { return Err(wire::nonsense(&format!("{line:?}"))) };
                for _ in 0..count {
                    inherited.add(Some(configured), TcpListener::from(wire::receive(stream)?));
                }
            }
            _ => return Err(wire::nonsense(&format!("{line:?}"))),
        }
    }
}
