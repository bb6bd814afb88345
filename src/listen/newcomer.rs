//! From a fresh socket to a conversation: who is there is settled first.

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpStream;
use tracing::debug;
use tracing::warn;

use super::Connection;
use super::Door;
use super::Handle;
use super::Settings;
use super::Tls;
use super::connections::Standing;
use super::conversation::converse;
use super::proxy_protocol::Ends;
use super::proxy_protocol::introduced;
use super::socket::Socket;

/// A socket just accepted.
#[derive(Debug)]
pub(super) struct Newcomer {
    pub(super) stream: TcpStream,
    pub(super) ends: Ends,
    pub(super) standing: Standing,
    pub(super) tls: Option<Arc<Tls>>,
    pub(super) settings: Arc<Settings>,
}

impl Newcomer {
    /// Speaks with whom the proxy at the other end connects for. It says so first, or is turned away.
    pub(super) async fn introduced<H: Handle>(mut self, door: Arc<Door>, handler: H) {
        match introduced(&self.stream, self.standing.group(), self.settings.header).await {
            Ok(ends) => self.ends = ends.unwrap_or(self.ends),
            Err(error) => return turn_away(&door, self.ends.source, &error),
        }
        if let Some(conversation) = self.converse(handler) {
            conversation.await;
        }
    }

    /// The conversation with it, now that it is known who it is. `None`: it has all the connections it may have.
    pub(super) fn converse<H: Handle>(mut self, handler: H) -> Option<impl Future<Output = ()>> {
        let Ends { source, destination } = self.ends;
        if !self.standing.belong_to(source.ip(), &self.settings) {
            return None;
        }
        let max_headers = self.settings.max_headers;
        let connection = Arc::new(Connection::new(source, destination, max_headers, self.standing.group()));
        let socket = Socket::new(self.stream, Arc::clone(&connection), self.standing);
        Some(converse(socket, self.tls, connection, self.settings, handler))
    }
}

/// Leaves a trace of a connection that is closed because its peer is not introduced as it should be.
pub(super) fn turn_away(door: &Door, peer: SocketAddr, reason: &dyn Display) {
    if door.is_first_turned_away() {
        warn!(%peer, "connection without a PROXY header from a trusted proxy closed: {reason}; more only at level debug");
    } else {
        debug!(%peer, "connection without a PROXY header from a trusted proxy closed: {reason}");
    }
}
