//! The connection of one core to one server, and a call over it.

use std::sync::Arc;

use parking_lot::Mutex;

use super::failure::Failure;
use super::node::RedisNode;
use crate::store::redis::transport::connection::RedisConnection;

/// The connection of this core to one server.
#[derive(Debug)]
pub(super) struct NodeConnection {
    pub(super) node: Arc<RedisNode>,
    pub(super) established: Mutex<Option<Established>>,
    /// Locked by the caller that connects, so that the others wait for its connection.
    pub(super) connecting: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
pub(super) struct Established {
    /// The generation of the server's breaker when the connection was made.
    pub(super) generation: u64,
    pub(super) connection: RedisConnection,
}

/// How far a call has come.
pub(super) struct Progress {
    pub(super) node: Arc<RedisNode>,
    pub(super) generation: u64,
    /// The one that brought the answer.
    pub(super) connection: Option<RedisConnection>,
    /// A refusal of this call does not open the breaker.
    pub(super) is_best_effort: bool,
}

impl NodeConnection {
    pub(super) fn new(node: &Arc<RedisNode>) -> Self {
        Self { node: Arc::clone(node), established: Mutex::new(None), connecting: tokio::sync::Mutex::new(()) }
    }

    /// The connection, if it is open. While the breaker is open this fails, and drops the connection.
    pub(super) fn current(&self, progress: &mut Progress) -> Result<Option<RedisConnection>, Failure> {
        let state = self.node.state();
        progress.generation = state.generation;
        let mut established = self.established.lock();
        // A connection that the server closed while it was idle is not a failure.
        established
            .take_if(|established| established.generation != state.generation || !established.connection.is_open());
        match state.cause {
            Some(_) => Err(Failure::Open),
            None => Ok(established.as_ref().map(|established| established.connection.clone())),
        }
    }
}
