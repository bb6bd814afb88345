//! One process takes over from another: the listening sockets, and the counts of a store in memory.
//!
//! The running gateway opens a [`ControlSocket`], a Unix socket in a directory that only its user may enter. The new
//! process reads and checks its configuration, connects there, and is handed every listening socket: not copies of the
//! address, but the same sockets with the same accept queues, so that no connection is refused or reset. Only when the
//! new process serves does the old one stop accepting. An error before that leaves the old one as it was.
//! [`protocol`] says what they send each other.

mod command_line;
mod control_directory;
mod control_socket;
mod hand_over;
mod handover_state;
mod inherited_state;
mod options;
mod outgoing;
mod predecessor;
mod protocol;
mod wire;

pub use self::command_line::CommandLine;
pub use self::control_directory::socket_names;
pub use self::control_socket::ControlSocket;
pub use self::control_socket::TakeoverRequest;
pub use self::hand_over::Successor;
pub use self::hand_over::hand_over;
pub use self::handover_state::HandoverState;
pub use self::inherited_state::InheritedState;
pub use self::options::TakeoverOptions;
pub use self::predecessor::Predecessor;

pub(super) use self::outgoing::OutgoingTakeover;
pub(super) use self::predecessor::LeavingPredecessor;
