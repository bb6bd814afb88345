//! One process takes over from another: the listening sockets, and the counts of a store in memory.
//!
//! The running gateway opens a [`ControlSocket`], a Unix socket in a directory that only its user may enter. The new
//! process reads and checks its configuration, connects there, and is handed every listening socket: not copies of the
//! address, but the same sockets with the same accept queues, so that no connection is refused or reset. Only when the
//! new process serves does the old one stop accepting. An error before that leaves the old one as it was.
//! [`wire`] says what they send each other.

mod control_socket;
mod options;
mod outgoing;
mod predecessor;
mod wire;

pub use self::control_socket::{ControlSocket, TakeoverRequest, socket_names};
pub use self::options::{CommandLine, TakeoverOptions};
pub(super) use self::outgoing::OutgoingTakeover;
pub use self::outgoing::{HandoverState, Successor, hand_over};
pub(super) use self::predecessor::LeavingPredecessor;
pub use self::predecessor::{InheritedState, Predecessor};
