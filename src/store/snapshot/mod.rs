//! The snapshot of a gateway that counts in memory: bans, known clients, sessions and signing keys survive a restart,
//! counts do not.
//!
//! The snapshot is one file that only its owner may read, because it contains the secret that keys are hashed with, and the
//! addresses of banned clients. It begins with the whole state, and what changes is appended. Now and then, and whenever a
//! process begins to write it, it is begun anew, beside the old one.
//!
//! - [`restore`](mod@restore): what is read when the gateway starts, and what becomes of it where the clock was wrong, or is.
//! - [`writer`]: what is written while it runs, and the form in which processes send it to each other.
//! - `state_file`: the file; `frame`: what it consists of, what it says, and how damage is found.

mod frame;
pub mod restore;
mod state_file;
pub mod writer;

pub use self::restore::restore;
pub use self::state_file::check_writable;
pub use self::writer::{SnapshotFailure, SnapshotWriter, export, import, write_changes};

#[cfg(test)]
mod tests;
