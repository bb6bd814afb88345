//! The side of the process that takes over.

use std::io;
use std::io::Read;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::process::geteuid;
use tokio::task;

use super::GREETING;
use super::PATIENCE;
use super::place;
use super::wire;
use crate::app::sockets::Inherited;

/// The gateway that has served until now, waiting for this process to serve.
#[derive(Debug)]
pub struct Predecessor {
    stream: UnixStream,
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
                if let Some(stream) = connect(&directory.join(name)).await? {
                    let spoken = task::spawn_blocking(move || greet(&stream).map(|got| (Self { stream }, got)));
                    return spoken.await.map_err(io::Error::other)?.map(Some);
                }
            }
        }
        Ok(None)
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
        if state.len() == length { Ok(state) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// Tells it that this process serves; returns when it has stopped accepting.
    pub(in crate::app) fn relieve(self) -> io::Result<()> {
        wire::say(&self.stream, "serving")?;
        match &*wire::hear(&self.stream)? {
            "draining" => Ok(()),
            other => Err(wire::nonsense(&format!("{other:?}"))),
        }
    }
}

/// `None`: nobody listens there.
async fn connect(path: &Path) -> io::Result<Option<UnixStream>> {
    let stream = match tokio::net::UnixStream::connect(path).await {
        Ok(stream) => stream,
        Err(error) if is_nobody(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    if stream.peer_cred()?.uid() != geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it runs as another user"));
    }
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(Some(stream))
}

fn is_nobody(error: &io::Error) -> bool {
    use std::io::ErrorKind;

    // A name that is too long for a socket is no valid input.
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::InvalidInput)
}

fn greet(stream: &UnixStream) -> io::Result<Inherited> {
    wire::say(stream, GREETING)?;
    let mut inherited = Inherited::default();
    loop {
        let line = wire::hear(stream)?;
        let mut words = line.split(' ');
        match (words.next(), words.next(), words.next()) {
            (Some("end"), None, None) => return Ok(inherited),
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
