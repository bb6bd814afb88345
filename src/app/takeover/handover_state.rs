//! What a running gateway hands to the process that takes over.

use std::sync::Arc;

use crate::clock::Clock;
use crate::listen::ListenAddress;
use crate::listen::ListeningSocket;
use crate::store::MemoryStore;
use crate::store::snapshot::SnapshotWriter;

/// What a running gateway hands to the process that takes over.
#[derive(Debug)]
pub struct HandoverState {
    /// Each address as it is configured, with the sockets on it.
    pub sockets: Vec<(ListenAddress, Vec<ListeningSocket>)>,
    /// Where counts are kept in memory: the store, and the writer of its snapshot.
    pub store: Option<(Arc<MemoryStore>, Arc<SnapshotWriter>)>,
    /// The clock that it decides by.
    pub clock: Clock,
}
