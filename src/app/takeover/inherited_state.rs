//! What a new process takes over from the one before it.

use super::predecessor::LeavingPredecessor;
use super::predecessor::Predecessor;
use crate::app::sockets::InheritedSockets;

/// What a new process takes over from the one before it.
#[derive(Debug, Default)]
pub struct InheritedState {
    pub sockets: InheritedSockets,
    /// The gateway that serves until this one does.
    pub predecessor: Option<Predecessor>,
    /// The same gateway from when this one serves.
    pub(in crate::app) leaving: Option<LeavingPredecessor>,
}
