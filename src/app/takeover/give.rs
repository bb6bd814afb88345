//! The side of the running gateway.

use std::io;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use super::GREETING;
use super::Heir;
use super::Offer;
use super::PATIENCE;
use super::wire;
use crate::store::snapshot;
use crate::store::snapshot::Pen;

/// The process that serves from now on, and waits to be told that this one drains.
#[derive(Debug)]
pub struct Successor {
    stream: UnixStream,
    /// Its number, where this process can see it.
    pub process: Option<u32>,
}

impl Successor {
    /// Tells it that this process accepts nothing more.
    pub fn dismiss(self) {
        // It serves either way.
        drop(wire::say(&self.stream, "draining"));
    }
}

/// Hands everything over, and returns when the heir serves. Blocks. After an error this gateway is as it was.
pub fn hand_over(heir: Heir, offer: &Offer) -> io::Result<Successor> {
    let Heir { stream, process } = heir;
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let lent = Lent(offer.store.as_ref().map(|(_, pen)| Arc::clone(pen)));
    converse(&stream, offer)?;
    lent.for_good();
    Ok(Successor { stream, process })
}

fn converse(stream: &UnixStream, offer: &Offer) -> io::Result<()> {
    let greeting = wire::hear(stream)?;
    if greeting != GREETING {
        return Err(wire::nonsense(&format!("{greeting:?}; is it another version?")));
    }
    for (configured, sockets) in &offer.sockets {
        wire::say(stream, &format!("sockets {configured} {}", sockets.len()))?;
        for socket in sockets {
            wire::pass(stream, socket)?;
        }
    }
    wire::say(stream, "end")?;
    loop {
        match &*wire::hear(stream)? {
            "state" => give_state(stream, offer)?,
            "serving" => return Ok(()),
            other => return Err(wire::nonsense(&format!("{other:?}"))),
        }
    }
}

fn give_state(mut stream: &UnixStream, offer: &Offer) -> io::Result<()> {
    let state = match &offer.store {
        Some((store, pen)) => {
            pen.lay_down();
            snapshot::export(store)?
        }
        None => Vec::new(),
    };
    wire::say(stream, &format!("state {}", state.len()))?;
    stream.write_all(&state)
}

/// The right to write the state, which comes back when it is not needed elsewhere after all.
struct Lent(Option<Arc<Pen>>);

impl Lent {
    fn for_good(mut self) {
        if let Some(pen) = self.0.take() {
            pen.lay_down();
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(pen) = &self.0 {
            pen.take_up();
        }
    }
}
