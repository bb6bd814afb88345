//! One connection from its first byte to its last: TLS handshake, protocol, requests, timeouts, drain.

use std::any::Any;
use std::fmt::Display;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use tokio::io::AsyncWrite;
use tracing::{debug, error, warn};

use super::http1::{Http1Session, SessionEnd, poll_read};
use super::http2::Http2Session;
use super::tls::{TlsHandshake, shake_hands};
use super::{Connection, ConnectionSettings, RequestHandler, Tls};
use crate::listen::client_stream::{Channel, ClientStream, Socket};
use crate::listen::connection::{ConnectionSupervisor, SupervisorAction};
use crate::listen::connections::ConnectionPermit;
use crate::listen::handler::ClientProtocol;
use crate::listen::proxy_protocol::{ConnectionAddresses, read_proxy_header};
use crate::listen::{ListenAddress, ListenerState};
use crate::rules::client::Networks;
use crate::wire::http2::PREFACE;
use crate::words::turn;

/// Serves one client until either side closes.
pub(super) async fn serve_connection<H: RequestHandler>(
    socket: Socket,
    tls: Option<Arc<Tls>>,
    connection: Arc<Connection>,
    settings: Arc<ConnectionSettings>,
    handler: H,
) {
    let mut supervisor = ConnectionSupervisor::new(&connection, &settings);
    match open(socket, tls, &connection, &mut supervisor).await {
        None => {}
        Some((opened, ClientProtocol::Http1)) => {
            serve_http1(opened, &connection, &settings, handler, &mut supervisor).await;
        }
        // On the heap, so that connections of HTTP/1 take no memory for it.
        Some((opened, ClientProtocol::Http2)) => {
            Box::pin(serve_http2(opened, &connection, &settings, handler, &mut supervisor)).await;
        }
    }
}

/// A byte stream, and the bytes that were read off it already.
type Opened = (Channel, BytesMut);

/// Does the TLS handshake, if there is one, and recognizes the protocol. `None`: the connection ended first.
async fn open(
    socket: Socket,
    tls: Option<Arc<Tls>>,
    connection: &Arc<Connection>,
    supervisor: &mut ConnectionSupervisor<'_>,
) -> Option<(Opened, ClientProtocol)> {
    let (mut channel, negotiated) = match &tls {
        None => (Channel::Plain(socket), None),
        Some(tls) => {
            let TlsHandshake { stream, tls_info, protocol } =
                perform_handshake(socket, tls, connection, supervisor).await?;
            connection.set_tls_info(tls_info);
            (Channel::Tls(stream), protocol)
        }
    };
    // A long connection does not keep certificates in memory that were renewed since.
    drop(tls);
    let mut read = BytesMut::new();
    if let Some(protocol) = negotiated {
        return Some(((channel, read), protocol));
    }
    let recognized = poll_fn(|cx| match poll_recognize(&mut channel, &mut read, cx) {
        Poll::Ready(protocol) => Poll::Ready(protocol.ok().flatten()),
        Poll::Pending => supervisor.poll(ClientProtocol::Http1, cx).map(|_| None),
    });
    let protocol = recognized.await?;
    Some(((channel, read), protocol))
}

/// The TLS handshake, within the timeout of the first byte. Anyone can make it fail at any rate, so failures are logged at
/// level debug.
async fn perform_handshake(
    socket: Socket,
    tls: &Tls,
    connection: &Connection,
    supervisor: &mut ConnectionSupervisor<'_>,
) -> Option<TlsHandshake> {
    // On the heap, so that its memory is released when it is done.
    let mut handshake = Box::pin(shake_hands(tls, socket));
    poll_fn(|cx| match handshake.as_mut().poll(cx) {
        Poll::Ready(Ok(stream)) => Poll::Ready(Some(stream)),
        Poll::Ready(Err(error)) => {
            debug!(peer = %connection.peer, %error, "TLS handshake failed");
            Poll::Ready(None)
        }
        Poll::Pending => supervisor.poll(ClientProtocol::Http1, cx).map(|_| None),
    })
    .await
}

async fn serve_http1<H: RequestHandler>(
    (channel, read): Opened,
    connection: &Arc<Connection>,
    settings: &ConnectionSettings,
    handler: H,
    supervisor: &mut ConnectionSupervisor<'_>,
) {
    let respond = |request, interim| handler.handle(Arc::clone(connection), request, interim);
    let mut session = Http1Session::new(connection, settings, channel, read, &handler, respond);
    let end = drive(&mut session, Http1Session::poll, |_| {}, |_| {}, ClientProtocol::Http1, supervisor).await;
    if session.must_reset() {
        return connection.progress.set_reset_on_close(true);
    }
    let is_unread = match end {
        Some(SessionEnd::Finished) => session.is_unread(),
        // Of a pipeline, the client may not have read the answers before, and may have sent more requests.
        Some(SessionEnd::Refused | SessionEnd::CutShort) => true,
        Some(SessionEnd::Upgraded) => return session.hand_over(),
        Some(SessionEnd::Broken) | None => return,
    };
    if let Some(channel) = session.into_channel() {
        close(channel, is_unread && !connection.has_left(), supervisor).await;
    }
}

/// Closes a connection after its last response, so that the client can read it.
///
/// Closing a socket with unread bytes resets the connection, and the response may be lost. So the bytes that the client
/// still sends are discarded for a moment, until it closes too.
async fn close(mut channel: Channel, is_unread: bool, supervisor: &mut ConnectionSupervisor<'_>) {
    poll_fn(|cx| match (Pin::new(&mut channel).poll_shutdown(cx), supervisor.poll_closing(cx)) {
        (Poll::Pending, Poll::Pending) => Poll::Pending,
        _ => Poll::Ready(()),
    })
    .await;
    if !is_unread {
        return;
    }
    poll_fn(|cx| match (poll_discard(&mut channel, cx), supervisor.poll_closing(cx)) {
        (Poll::Pending, Poll::Pending) => Poll::Pending,
        _ => Poll::Ready(()),
    })
    .await;
}

/// Reads and discards until the client has closed.
fn poll_discard(channel: &mut Channel, cx: &mut Context<'_>) -> Poll<()> {
    while ready!(poll_read(Pin::new(channel), cx, |read| !read.is_empty())).is_ok_and(|more| more) {}
    Poll::Ready(())
}

async fn serve_http2<H: RequestHandler>(
    (channel, read): Opened,
    connection: &Arc<Connection>,
    settings: &Arc<ConnectionSettings>,
    handler: H,
    supervisor: &mut ConnectionSupervisor<'_>,
) {
    let mut session = Http2Session::new(connection, settings, channel, read, handler);
    let (poll, start_drain, ping) = (Http2Session::poll, Http2Session::start_drain, Http2Session::ping);
    let end = drive(&mut session, poll, start_drain, ping, ClientProtocol::Http2, supervisor).await;
    let Some(end) = end else { return };
    if let Err(error) = &end {
        debug!(peer = %connection.peer, %error, "connection ended");
    }
    if let Some(channel) = session.into_channel() {
        let is_unread = end.is_err() || channel.socket().is_readable();
        close(channel, is_unread && !connection.has_left(), supervisor).await;
    }
}

/// Polls a session to its end. `None`: it panicked, or the supervisor ended it.
async fn drive<S, T>(
    session: &mut S,
    poll: impl Fn(&mut S, &mut Context<'_>) -> Poll<T>,
    start_drain: impl Fn(&mut S),
    ping: impl Fn(&mut S),
    protocol: ClientProtocol,
    supervisor: &mut ConnectionSupervisor<'_>,
) -> Option<T> {
    poll_fn(|cx| {
        loop {
            match turn::polled(|| catch_unwind(AssertUnwindSafe(|| poll(session, cx)))) {
                (Ok(Poll::Ready(end)), _) => return Poll::Ready(Some(end)),
                (Ok(Poll::Pending), true) => return Poll::Pending,
                (Ok(Poll::Pending), false) => {}
                (Err(panic), _) => {
                    log_panic(&*panic);
                    return Poll::Ready(None);
                }
            }
            match supervisor.poll(protocol, cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(SupervisorAction::End) => return Poll::Ready(None),
                Poll::Ready(SupervisorAction::Retry) => {}
                // The session winds down in its next poll.
                Poll::Ready(SupervisorAction::WindDown) => start_drain(session),
                Poll::Ready(SupervisorAction::Ping) => ping(session),
            }
        }
    })
    .await
}

// Recognizes the protocol of a client that did not negotiate one in the TLS handshake.

/// Reads until the protocol is known, and keeps the bytes in `read`. `None`: the client left without sending anything.
pub(super) fn poll_recognize(
    channel: &mut Channel,
    read: &mut BytesMut,
    cx: &mut Context<'_>,
) -> Poll<io::Result<Option<ClientProtocol>>> {
    loop {
        let length = ready!(poll_read(Pin::new(channel), cx, |fresh| {
            read.extend_from_slice(fresh);
            fresh.len()
        }))?;
        let compared = read.len().min(PREFACE.len());
        if read[..compared] != PREFACE[..compared] {
            return Poll::Ready(Ok(Some(ClientProtocol::Http1)));
        }
        if compared == PREFACE.len() {
            return Poll::Ready(Ok(Some(ClientProtocol::Http2)));
        }
        if length == 0 {
            return Poll::Ready(Ok(None));
        }
    }
}

// Logs panics of requests.

/// Logs a panic, which is a defect of the gateway. Only the request that panicked ends.
pub(super) fn log_panic(panic: &(dyn Any + Send)) {
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    error!(panic = message, "a request panicked, this is a defect; the request was dropped");
}

// From an accepted socket to a session: the PROXY header is read first, where one is required.

/// A socket just accepted.
#[derive(Debug)]
pub(super) struct AcceptedSocket {
    pub(super) stream: ClientStream,
    pub(super) addresses: ConnectionAddresses,
    pub(super) permit: ConnectionPermit,
    pub(super) askers: Option<Arc<Networks>>,
    pub(super) tls: Option<Arc<Tls>>,
    pub(super) settings: Arc<ConnectionSettings>,
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
