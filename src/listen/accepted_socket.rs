//! From a fresh socket to a conversation: who is there is settled first.

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpStream;
use tracing::debug;
use tracing::warn;

use super::Connection;
use super::Handle;
use super::ListenerState;
use super::Settings;
use super::Tls;
use super::connections::ConnectionPermit;
use super::conversation::converse;
use super::proxy_protocol::Ends;
use super::proxy_protocol::read_proxy_header;
use super::socket::Socket;

/// A socket just accepted.
#[derive(Debug)]
pub(super) struct AcceptedSocket {
    pub(super) stream: TcpStream,
    pub(super) ends: Ends,
    pub(super) permit: ConnectionPermit,
    pub(super) tls: Option<Arc<Tls>>,
    pub(super) settings: Arc<Settings>,
}

impl AcceptedSocket {
    /// Speaks with whom the proxy at the other end connects for. It says so first, or is turned away.
    pub(super) async fn read_proxy_header<H: Handle>(mut self, listener: Arc<ListenerState>, handler: H) {
        match read_proxy_header(&self.stream, self.permit.group(), self.settings.header).await {
            Ok(ends) => self.ends = ends.unwrap_or(self.ends),
            Err(error) => return turn_away(&listener, self.ends.source, &error),
        }
        if let Some(conversation) = self.converse(handler) {
            conversation.await;
        }
    }

    /// The conversation with it, now that it is known who it is. `None`: it has all the connections it may have.
    pub(super) fn converse<H: Handle>(mut self, handler: H) -> Option<impl Future<Output = ()>> {
        let Ends { source, destination } = self.ends;
        if !self.permit.belong_to(source.ip(), &self.settings) {
            return None;
        }
        let max_headers = self.settings.max_headers;
        let connection = Arc::new(Connection::new(source, destination, max_headers, self.permit.group()));
        let socket = Socket::new(self.stream, Arc::clone(&connection), self.permit);
        Some(converse(socket, self.tls, connection, self.settings, handler))
    }
}

/// Leaves a trace of a connection that is closed because its peer did not send a valid PROXY header.
pub(super) fn turn_away(listener: &ListenerState, peer: SocketAddr, reason: &dyn Display) {
    if listener.is_first_turned_away() {
        warn!(%peer, "connection without a PROXY header from a trusted proxy closed: {reason}; more only at level debug");
    } else {
        debug!(%peer, "connection without a PROXY header from a trusted proxy closed: {reason}");
    }
}
