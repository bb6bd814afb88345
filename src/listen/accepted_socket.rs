//! From an accepted socket to a session: the PROXY header is read first, where one is required.

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;

use tracing::debug;
use tracing::warn;

use super::Connection;
use super::ListenAddress;
use super::ListenerState;
use super::RequestHandler;
use super::Settings;
use super::Tls;
use super::client_stream::ClientStream;
use super::connections::ConnectionPermit;
use super::proxy_protocol::ConnectionAddresses;
use super::proxy_protocol::read_proxy_header;
use super::session::serve_connection;
use super::socket::Socket;
use crate::client::Networks;

/// A socket just accepted.
#[derive(Debug)]
pub(super) struct AcceptedSocket {
    pub(super) stream: ClientStream,
    pub(super) addresses: ConnectionAddresses,
    pub(super) permit: ConnectionPermit,
    pub(super) askers: Option<Arc<Networks>>,
    pub(super) tls: Option<Arc<Tls>>,
    pub(super) settings: Arc<Settings>,
}

impl AcceptedSocket {
    /// Reads the PROXY header, and serves the connection of the client behind the proxy.
    pub(super) async fn serve_behind_proxy<H: RequestHandler>(mut self, state: Arc<ListenerState>, handler: H) {
        match read_proxy_header(&self.stream, self.permit.group(), self.settings.header).await {
            Ok(addresses) => self.addresses = addresses.unwrap_or(self.addresses),
            Err(error) => {
                self.permit.group().count_rejected();
                return log_without_proxy_header(&state, self.addresses.source, &error);
            }
        }
        if let Some(session) = self.serve(handler) {
            session.await;
        }
    }

    /// The session of the client. `None`: the client has as many connections as it may.
    pub(super) fn serve<H: RequestHandler>(mut self, handler: H) -> Option<impl Future<Output = ()>> {
        let ConnectionAddresses { source, destination } = self.addresses;
        // A proxy that asks has the connections of all its clients.
        if self.askers.is_none() && !self.permit.assign_to(source.ip(), &self.settings) {
            return None;
        }
        let max_headers = self.settings.max_headers;
        let connection = Arc::new(Connection::new(source, destination, self.askers, max_headers, self.permit.group()));
        let socket = Socket::new(self.stream, Arc::clone(&connection), self.permit);
        Some(serve_connection(socket, self.tls, connection, self.settings, handler))
    }
}

/// Logs a connection that is closed because its peer did not send a valid PROXY header.
pub(super) fn log_without_proxy_header(state: &ListenerState, peer: SocketAddr, reason: &dyn Display) {
    if state.is_first_rejection(peer.ip()) {
        warn!(
            %peer,
            "connection without a PROXY header from a trusted proxy closed: {reason}; more from its network only at level debug"
        );
    } else {
        debug!(%peer, "connection without a PROXY header from a trusted proxy closed: {reason}");
    }
}

/// Logs a connection that is closed because its peer may not ask for decisions.
pub(super) fn log_foreign_asker(state: &ListenerState, peer: SocketAddr, local: &ListenAddress) {
    if state.is_first_rejection(peer.ip()) {
        warn!(
            %peer,
            %local,
            "connection closed: the peer is not in `from` of this listener, so it gets no decisions; more from its network \
             only at level debug"
        );
    } else {
        debug!(%peer, %local, "connection closed: the peer is not in `from` of this listener");
    }
}
