//! One connection from its first byte to its last: TLS handshake, protocol, requests, timeouts, drain.

use std::any::Any;
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
use tracing::error;

use super::Connection;
use super::Handle;
use super::Refused;
use super::Settings;
use super::Tls;
use super::channel::Channel;
use super::connection_supervisor::ConnectionSupervisor;
use super::connection_supervisor::Verdict;
use super::http1;
use super::http1::Conversation;
use super::http1::End;
use super::http2;
use super::recognize::Protocol;
use super::recognize::poll_recognize;
use super::socket::Socket;
use super::tls::TlsHandshake;
use super::tls::shake_hands;

/// Speaks with one client until either side has had enough.
pub(super) async fn converse<H: Handle>(
    socket: Socket,
    tls: Option<Arc<Tls>>,
    connection: Arc<Connection>,
    settings: Arc<Settings>,
    handler: H,
) {
    let mut supervisor = ConnectionSupervisor::new(&connection, &settings);
    match open(socket, tls, &connection, &mut supervisor).await {
        None => {}
        Some((opened, Protocol::Http1)) => http1(opened, &connection, &settings, handler, &mut supervisor).await,
        // On the heap: connections of HTTP/1 have no room for it.
        Some((opened, Protocol::Http2)) => {
            Box::pin(http2(opened, &connection, &settings, handler, &mut supervisor)).await;
        }
    }
}

/// What HTTP is spoken over, and what was read off it before its time.
type Opened = (Channel, BytesMut);

/// Makes of a fresh socket what HTTP is spoken over, and finds out which. `None`: nothing came of it.
async fn open(
    socket: Socket,
    tls: Option<Arc<Tls>>,
    connection: &Arc<Connection>,
    supervisor: &mut ConnectionSupervisor<'_>,
) -> Option<(Opened, Protocol)> {
    let (mut channel, agreed) = match &tls {
        None => (Channel::Plain(socket), None),
        Some(tls) => {
            let TlsHandshake { stream, tls_info, protocol } = secure(socket, tls, connection, supervisor).await?;
            connection.set_tls_info(tls_info);
            (Channel::Tls(stream), protocol)
        }
    };
    // Whoever stays for long does not hold on to certificates that were renewed since.
    drop(tls);
    let mut read = BytesMut::new();
    if let Some(protocol) = agreed {
        return Some(((channel, read), protocol));
    }
    let recognized = poll_fn(|cx| match poll_recognize(&mut channel, &mut read, cx) {
        Poll::Ready(protocol) => Poll::Ready(protocol.ok().flatten()),
        Poll::Pending => supervisor.poll(Protocol::Http1, cx).map(|_| None),
    });
    let protocol = recognized.await?;
    Some(((channel, read), protocol))
}

/// The handshake, which may not take longer than a first byte. Anyone can fail here, as often as they like: nothing is
/// said of it but to those who look for it.
async fn secure(
    socket: Socket,
    tls: &Tls,
    connection: &Connection,
    supervisor: &mut ConnectionSupervisor<'_>,
) -> Option<TlsHandshake> {
    // On the heap, and gone when it is done.
    let mut handshake = Box::pin(shake_hands(tls, socket));
    poll_fn(|cx| match handshake.as_mut().poll(cx) {
        Poll::Ready(Ok(greeted)) => Poll::Ready(Some(greeted)),
        Poll::Ready(Err(error)) => {
            debug!(peer = %connection.peer, %error, "TLS handshake failed");
            Poll::Ready(None)
        }
        Poll::Pending => supervisor.poll(Protocol::Http1, cx).map(|_| None),
    })
    .await
}

async fn http1<H: Handle>(
    (channel, read): Opened,
    connection: &Arc<Connection>,
    settings: &Settings,
    handler: H,
    supervisor: &mut ConnectionSupervisor<'_>,
) {
    let answer = |request, interim| handler.handle(Arc::clone(connection), request, interim);
    let mut conversation = Conversation::new(connection, settings, channel, read, answer);
    let end = drive(&mut conversation, Conversation::poll, |_| {}, Protocol::Http1, supervisor).await;
    let is_unread = match end {
        Some(End::Said) => conversation.is_unread(),
        Some(End::Refused(status)) => {
            handler.refused(connection, Refused::unread(status));
            true
        }
        Some(End::Upgraded) => return conversation.hand_over(),
        Some(End::Broken) | None => return,
    };
    if let Some(channel) = conversation.into_channel() {
        close(channel, is_unread && !connection.has_left(), supervisor).await;
    }
}

/// Closes a connection on which all is said, and lets the client read its last answer.
///
/// A socket closed with something unread resets the connection, and an answer that says why may be lost with it. So
/// what the client still sends is thrown away until it closes too, for a moment.
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

/// Reads, and throws away, until the client has closed.
fn poll_discard(channel: &mut Channel, cx: &mut Context<'_>) -> Poll<()> {
    while ready!(http1::poll_read(Pin::new(channel), cx, |read| !read.is_empty())).is_ok_and(|more| more) {}
    Poll::Ready(())
}

async fn http2<H: Handle>(
    (channel, read): Opened,
    connection: &Arc<Connection>,
    settings: &Arc<Settings>,
    handler: H,
    supervisor: &mut ConnectionSupervisor<'_>,
) {
    let mut conversation = http2::Conversation::new(connection, settings, channel, read, handler);
    let (poll, wind_down) = (http2::Conversation::poll, http2::Conversation::wind_down);
    let ended = drive(&mut conversation, poll, wind_down, Protocol::Http2, supervisor).await;
    if let Some(Err(error)) = ended {
        debug!(peer = %connection.peer, %error, "connection ended");
    }
}

/// Has a conversation go on to its end, or until it should go no further, which is `None`.
async fn drive<C, T>(
    conversation: &mut C,
    poll: impl Fn(&mut C, &mut Context<'_>) -> Poll<T>,
    wind_down: impl Fn(&mut C),
    protocol: Protocol,
    supervisor: &mut ConnectionSupervisor<'_>,
) -> Option<T> {
    poll_fn(|cx| {
        loop {
            match catch_unwind(AssertUnwindSafe(|| poll(conversation, cx))) {
                Ok(Poll::Ready(end)) => return Poll::Ready(Some(end)),
                Ok(Poll::Pending) => {}
                Err(panic) => {
                    log_panic(&*panic);
                    return Poll::Ready(None);
                }
            }
            match supervisor.poll(protocol, cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Verdict::End) => return Poll::Ready(None),
                Poll::Ready(Verdict::TryOn) => {}
                // What it does then, it does when polled again.
                Poll::Ready(Verdict::WindDown) => wind_down(conversation),
            }
        }
    })
    .await
}

/// A panic is a defect of ours; only the request it happened in ends.
pub(super) fn log_panic(panic: &(dyn Any + Send)) {
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    error!(panic = message, "a request panicked, this is a defect; the request was dropped");
}
