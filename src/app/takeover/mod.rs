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
//! | `take over 1` | `sockets ADDRESS COUNT` and so many descriptors, for each address; then `end` |
//! | `state` | `state LENGTH` and so many bytes: bans and known clients; nothing is kept on disk from here on |
//! | `serving` | `draining` |

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

use crate::store::MemoryStore;
use crate::store::snapshot::Pen;

/// What a running gateway hands over.
#[derive(Debug)]
pub struct Offer {
    /// Each address as it is configured, with the sockets on it.
    pub sockets: Vec<(SocketAddr, Vec<TcpListener>)>,
    /// Where counts are kept in memory: the store, and the right to write its file.
    pub store: Option<(Arc<MemoryStore>, Arc<Pen>)>,
}

/// The first line; the digit is the version of what follows.
const GREETING: &str = "take over 1";

/// How long either side waits for the other: a gateway may be reading a list of a million lines, or waiting for Redis.
const PATIENCE: Duration = Duration::from_secs(60);
