//! One connection from its first byte to its last: TLS handshake, protocol, requests, timeouts, drain.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use bytes::BytesMut;
use tokio::io::AsyncWrite;
use tracing::debug;

use super::Connection;
use super::RequestHandler;
use super::Settings;
use super::Tls;
use super::channel::Channel;
use super::connection_supervisor::ConnectionSupervisor;
use super::connection_supervisor::SupervisorAction;
use super::http1::Http1Session;
use super::http1::SessionEnd;
use super::http1::poll_read;
use super::http2::Http2Session;
use super::panic::log_panic;
use super::protocol::Protocol;
use super::recognize::poll_recognize;
use super::socket::Socket;
use super::tls::TlsHandshake;
use super::tls::shake_hands;

/// Serves one client until either side closes.
pub(super) async fn serve_connection<H: RequestHandler>(
    socket: Socket,
    tls: Option<Arc<Tls>>,
    connection: Arc<Connection>,
    settings: Arc<Settings>,
    handler: H,
) {
    let mut supervisor = ConnectionSupervisor::new(&connection, &settings);
    match open(socket, tls, &connection, &mut supervisor).await {
        None => {}
        Some((opened, Protocol::Http1)) => serve_http1(opened, &connection, &settings, handler, &mut supervisor).await,
        // On the heap, so that connections of HTTP/1 take no memory for it.
        Some((opened, Protocol::Http2)) => {
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
) -> Option<(Opened, Protocol)> {
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
        Poll::Pending => supervisor.poll(Protocol::Http1, cx).map(|_| None),
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
        Poll::Pending => supervisor.poll(Protocol::Http1, cx).map(|_| None),
    })
    .await
}

async fn serve_http1<H: RequestHandler>(
    (channel, read): Opened,
    connection: &Arc<Connection>,
    settings: &Settings,
    handler: H,
    supervisor: &mut ConnectionSupervisor<'_>,
) {
    let respond = |request, interim| handler.handle(Arc::clone(connection), request, interim);
    let mut session = Http1Session::new(connection, settings, channel, read, &handler, respond);
    let end = drive(&mut session, Http1Session::poll, |_| {}, |_| {}, Protocol::Http1, supervisor).await;
    let is_unread = match end {
        Some(SessionEnd::Finished) => session.is_unread(),
        Some(SessionEnd::Refused) => true,
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
    settings: &Arc<Settings>,
    handler: H,
    supervisor: &mut ConnectionSupervisor<'_>,
) {
    let mut session = Http2Session::new(connection, settings, channel, read, handler);
    let (poll, wind_down, ping) = (Http2Session::poll, Http2Session::wind_down, Http2Session::ping);
    let ended = drive(&mut session, poll, wind_down, ping, Protocol::Http2, supervisor).await;
    if let Some(Err(error)) = ended {
        debug!(peer = %connection.peer, %error, "connection ended");
    }
}

/// Polls a session to its end. `None`: it panicked, or the supervisor ended it.
async fn drive<S, T>(
    session: &mut S,
    poll: impl Fn(&mut S, &mut Context<'_>) -> Poll<T>,
    wind_down: impl Fn(&mut S),
    ping: impl Fn(&mut S),
    protocol: Protocol,
    supervisor: &mut ConnectionSupervisor<'_>,
) -> Option<T> {
    poll_fn(|cx| {
        loop {
            match catch_unwind(AssertUnwindSafe(|| poll(session, cx))) {
                Ok(Poll::Ready(end)) => return Poll::Ready(Some(end)),
                Ok(Poll::Pending) => {}
                Err(panic) => {
                    log_panic(&*panic);
                    return Poll::Ready(None);
                }
            }
            match supervisor.poll(protocol, cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(SupervisorAction::End) => return Poll::Ready(None),
                Poll::Ready(SupervisorAction::Retry) => {}
                // The session winds down in its next poll.
                Poll::Ready(SupervisorAction::WindDown) => wind_down(session),
                Poll::Ready(SupervisorAction::Ping) => ping(session),
            }
        }
    })
    .await
}
