//! One process takes over from another: the listening sockets, and what a gateway in memory knows.
//!
//! The running gateway opens a [`Hatch`], a Unix socket in a directory that only its user may enter. The new process reads
//! and checks its configuration, knocks, and is handed every listening socket: not copies of the address, but the same
//! sockets with the same accept queues, so that no connection is refused or reset. Only when the new process serves does
//! the old one stop accepting. What goes wrong before that leaves the old one as it was.
//!
//! They speak in lines:
//!
//! | new process | running gateway |
//! | --- | --- |
//! | `take over 2` | `sockets ADDRESS COUNT` and so many descriptors, for each address; `clock MICROSECONDS`; then `end` |
//! | `state` | `state LENGTH` and so many bytes: bans and known clients; nothing is kept on disk from here on |
//! | `counts` | everything that is counted, as [`transfer`](crate::store::handover::transfer) sends it; it is frozen now |
//! | `serving` | after `counts`, `yours` or `mine`: who goes on with them; else `draining` |
//!
//! `counts` comes last, when there is nothing left that could fail or take long. Before `yours` the new process decides
//! nothing, after it the old one decides nothing: what it still serves it asks the new one, over the same socket (see
//! [`handover`](crate::store::handover)). An end without a word means that the process at the other end is gone.
//!
//! To a gateway that knows no more than that the new process says `take over 1`: without clock and `counts`.

mod give;
mod hatch;
mod place;
mod spawn;
mod take;
mod wire;

use std::net::SocketAddr;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

pub use self::give::Successor;
pub use self::give::hand_over;
pub use self::hatch::Hatch;
pub use self::hatch::Heir;
pub use self::place::names;
pub use self::spawn::CommandLine;
pub use self::take::Predecessor;

pub(in crate::app) use self::take::Leaving;

use crate::clock::Clock;
use crate::store::MemoryStore;
use crate::store::snapshot::SnapshotWriter;

/// What a running gateway hands over.
#[derive(Debug)]
pub struct Offer {
    /// Each address as it is configured, with the sockets on it.
    pub sockets: Vec<(SocketAddr, Vec<TcpListener>)>,
    /// Where counts are kept in memory: the store, and the right to write its file.
    pub store: Option<(Arc<MemoryStore>, Arc<SnapshotWriter>)>,
    /// By which it decides.
    pub clock: Clock,
}

/// The first line; the digit is the version of what follows, and of all that is sent of counts: whoever changes how a
/// key's memory is written changes it too.
const GREETING: &str = "take over 2";

/// The same of the version before, which knows no counts.
const GREETING_OF_BEFORE: &str = "take over 1";

/// How long counts stay frozen for a new process that does not go on.
const FREEZE: Duration = Duration::from_secs(5);

/// How long either side waits for the other: a gateway may be reading a list of a million lines, or waiting for Redis.
const PATIENCE: Duration = Duration::from_secs(60);
