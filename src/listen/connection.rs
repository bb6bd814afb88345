//! What is known about one client's connection, and all connections of the process.

use std::net::SocketAddr;
use std::sync::Arc;

/// The facts of a connection.
#[derive(Debug)]
pub struct Connection {
    /// Who connected.
    pub peer: SocketAddr,
    /// Where.
    pub local: SocketAddr,
}

/// All connections of the process: counted, bounded, drained together. Clones share the count.
#[derive(Clone, Debug, Default)]
pub struct Connections {
    shared: Arc<()>,
}

impl Connections {
    /// How many stand.
    pub fn count(&self) -> usize {
        todo!()
    }

    /// Lets every connection finish the request it is at, then close; returns when all have.
    pub async fn drain(&self) {
        todo!()
    }
}
