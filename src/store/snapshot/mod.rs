//! The snapshot of a gateway that counts in memory: bans, known clients, sessions and signing keys survive a restart,
//! counts do not.
//!
//! The snapshot is one file that only its owner may read, because it contains the secret that keys are hashed with, and the
//! addresses of banned clients. It begins with the whole state, and what changes is appended. Now and then, and whenever a
//! process begins to write it, it is begun anew, beside the old one.
//!
//! - [`restore`](mod@restore): what is read when the gateway starts; [`writer`]: what is written while it runs.
//! - `state_file`: the file; `file_header`, `frame`: what it consists of, and how damage is found; `record`: what it says;
//!   `replay`: what all of it says together.
//! - `correction`: what becomes of it where the clock was wrong, or is.
//! - `content`: what a snapshot holds of a store; [`one_piece`]: the form in which processes send it to each other.

pub mod one_piece;
pub mod restore;
pub mod writer;

mod content;
mod correction;
mod file_header;
mod frame;
mod record;
mod replay;
mod state_file;

pub use self::one_piece::export;
pub use self::one_piece::import;
pub use self::restore::restore;
pub use self::state_file::check_writable;
pub use self::writer::SnapshotWriter;
pub use self::writer::write_changes;

#[cfg(test)]
mod tests;
