//! One connection from its first byte to its last: secured, recognized, spoken with, watched, drained.

use std::any::Any;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use http::Request;
use http::StatusCode;
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::server::conn::http1::UpgradeableConnection;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tracing::debug;
use tracing::error;

use super::Connection;
use super::Handle;
use super::Settings;
use super::Tls;
use super::answering::Answering;
use super::body::Whose;
use super::channel::Channel;
use super::minder::Minder;
use super::minder::Verdict;
use super::socket::Socket;
use super::streams::Streams;
use super::tapped::Protocol;
use super::tapped::Tapped;
use super::tls::Greeted;
use super::tls::shake_hands;

/// Speaks with one client until either side has had enough.
pub(super) async fn converse<H: Handle>(
    socket: Socket,
    tls: Option<Arc<Tls>>,
    connection: Arc<Connection>,
    settings: Arc<Settings>,
    handler: H,
) {
    let mut minder = Minder::new(&connection, &settings);
    match open(socket, tls, &connection, &mut minder).await {
        None => {}
        Some((io, Protocol::Http1)) => http1(io, &connection, &settings, handler, &mut minder).await,
        // On the heap: connections of HTTP/1 have no room for it.
        Some((io, Protocol::Http2)) => Box::pin(http2(io, &connection, &settings, handler, &mut minder)).await,
    }
}

/// Makes of a fresh socket what HTTP is spoken over, and finds out which. `None`: nothing came of it.
async fn open(
    socket: Socket,
    tls: Option<Arc<Tls>>,
    connection: &Arc<Connection>,
    minder: &mut Minder<'_>,
) -> Option<(Tapped, Protocol)> {
    let (channel, agreed) = match &tls {
        None => (Channel::Plain(socket), None),
        Some(tls) => {
            let Greeted { stream, secured, protocol } = secure(socket, tls, connection, minder).await?;
            connection.is_secured(secured);
            (Channel::Tls(stream), protocol)
        }
    };
    // Whoever stays for long does not hold on to certificates that were renewed since.
    drop(tls);
    let mut io = Tapped::new(channel, Arc::clone(connection));
    if let Some(protocol) = agreed {
        return Some((io.agreed_on(protocol), protocol));
    }
    let recognized = poll_fn(|cx| match io.poll_recognize(cx) {
        Poll::Ready(protocol) => Poll::Ready(protocol.ok().flatten()),
        Poll::Pending => minder.poll(Protocol::Http1, cx).map(|_| None),
    });
    let protocol = recognized.await?;
    Some((io, protocol))
}

/// The handshake, which may not take longer than a first byte. Anyone can fail here, as often as they like: nothing is
/// said of it but to those who look for it.
async fn secure(socket: Socket, tls: &Tls, connection: &Connection, minder: &mut Minder<'_>) -> Option<Greeted> {
    // On the heap, and gone when it is done.
    let mut handshake = Box::pin(shake_hands(tls, socket));
    poll_fn(|cx| match handshake.as_mut().poll(cx) {
        Poll::Ready(Ok(greeted)) => Poll::Ready(Some(greeted)),
        Poll::Ready(Err(error)) => {
            debug!(peer = %connection.peer, %error, "TLS handshake failed");
            Poll::Ready(None)
        }
        Poll::Pending => minder.poll(Protocol::Http1, cx).map(|_| None),
    })
    .await
}

async fn http1<H: Handle>(
    mut io: Tapped,
    connection: &Arc<Connection>,
    settings: &Settings,
    handler: H,
    minder: &mut Minder<'_>,
) {
    loop {
        // On the heap, and gone while the connection rests: all that is held then is in this function.
        io = match Box::pin(speak(io, connection, settings, &handler, minder)).await {
            Spoken::Parked(io) => io,
            Spoken::Ended(io) => return linger(io, minder).await,
            Spoken::Stopped => return,
        };
        if !rest(&mut io, minder).await {
            return;
        }
    }
}

/// How far a conversation (HTTP/1) got.
enum Spoken {
    /// It may go on here when the client says more.
    Parked(Tapped),
    Ended(Tapped),
    /// It was cut, or has become something else.
    Stopped,
}

/// Answers requests until the client has been silent for a while.
async fn speak<H: Handle>(
    io: Tapped,
    connection: &Arc<Connection>,
    settings: &Settings,
    handler: &H,
    minder: &mut Minder<'_>,
) -> Spoken {
    let mut builder = http1::Builder::new();
    // The watchdog has the timeouts, and the socket tells a half-closed client from one that left.
    builder.header_read_timeout(None);
    builder.max_buf_size(settings.max_header_bytes.max(MIN_BUFFER));
    builder.max_header_size(settings.max_header_bytes);
    if settings.max_headers != HYPER_MAX_HEADERS {
        // Saying it, even with the default, would cost an allocation on each request.
        builder.max_headers(settings.max_headers);
    }
    // Who learns with the answer that it is the last one does not send a request that nobody reads.
    builder.keep_alive(!minder.is_draining());
    let service = service_fn(|request: Request<Incoming>| {
        let body = request.body();
        connection.progress.begin(if body.is_end_stream() { Some(0) } else { body.size_hint().exact() });
        let whose = Whose::Connection(Arc::clone(connection));
        Answering::new(handler.handle(Arc::clone(connection), request), whose)
    });
    let mut conversation = builder.serve_connection(TokioIo::new(io), service).with_upgrades();
    let driven = drive(&mut conversation, Protocol::Http1, minder, UpgradeableConnection::graceful_shutdown).await;
    if let Driven::Ended(Err(error)) = &driven {
        debug!(peer = %connection.peer, %error, "connection ended");
        if let Some(status) = malformed(error) {
            handler.malformed(connection, status);
        }
    }
    if matches!(driven, Driven::Stopped) {
        return Spoken::Stopped;
    }
    let Some(parts) = conversation.into_parts() else { return Spoken::Stopped };
    let mut io = parts.io.into_inner();
    if matches!(driven, Driven::Ended(_)) {
        return Spoken::Ended(io);
    }
    io.put_back(&parts.read_buf);
    Spoken::Parked(io)
}

/// Waits for the next request without hyper, whose buffers are most of what an idle connection holds. `false`: none
/// may come any more.
async fn rest(io: &mut Tapped, minder: &mut Minder<'_>) -> bool {
    poll_fn(|cx| {
        if io.poll_readable(cx).is_ready() {
            return Poll::Ready(true);
        }
        // Nothing is under way, so that whatever it says, this is the end.
        minder.poll_resting(cx).map(|()| false)
    })
    .await
}

/// Lets the client read its last answer.
///
/// A socket closed with something unread resets the connection, and an answer that says why may be lost with it. So
/// what the client still sends is thrown away until it closes too, for a moment.
async fn linger(mut io: Tapped, minder: &mut Minder<'_>) {
    if !io.more_may_come() {
        return;
    }
    poll_fn(|cx| match (io.poll_discard(cx), minder.poll_closing(cx)) {
        (Poll::Pending, Poll::Pending) => Poll::Pending,
        _ => Poll::Ready(()),
    })
    .await;
}

async fn http2<H: Handle>(
    io: Tapped,
    connection: &Arc<Connection>,
    settings: &Settings,
    handler: H,
    minder: &mut Minder<'_>,
) {
    let streams = Streams::new(Arc::clone(connection), settings.body_idle);
    let mut builder = http2::Builder::new(streams.clone());
    builder
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(u32::try_from(settings.max_header_bytes).unwrap_or(u32::MAX))
        .max_send_buf_size(SEND_BUFFER);
    let service = service_fn(|request: Request<Incoming>| {
        connection.progress.begin(Some(0));
        let stream = streams.open();
        Answering::new(handler.handle(Arc::clone(connection), request), Whose::Stream(stream))
    });
    let mut conversation = builder.serve_connection(TokioIo::new(io), service);
    if let Driven::Ended(Err(error)) =
        drive(&mut conversation, Protocol::Http2, minder, http2::Connection::graceful_shutdown).await
    {
        debug!(peer = %connection.peer, %error, "connection ended");
    }
}

/// How far a conversation got.
enum Driven {
    Ended(hyper::Result<()>),
    /// It kept us waiting, or was told to end.
    Stopped,
    /// It has been silent for a while and may be taken apart.
    Parked,
}

/// Polls a connection to its end, or until it should go no further.
async fn drive<C>(
    conversation: &mut C,
    protocol: Protocol,
    minder: &mut Minder<'_>,
    wind_down: impl Fn(Pin<&mut C>),
) -> Driven
where
    C: Future<Output = hyper::Result<()>> + Unpin,
{
    poll_fn(|cx| {
        loop {
            match catch_unwind(AssertUnwindSafe(|| Pin::new(&mut *conversation).poll(cx))) {
                Ok(Poll::Ready(result)) => return Poll::Ready(Driven::Ended(result)),
                Ok(Poll::Pending) => {}
                Err(panic) => {
                    log_panic(&*panic);
                    return Poll::Ready(Driven::Stopped);
                }
            }
            match minder.poll(protocol, cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Verdict::End) => return Poll::Ready(Driven::Stopped),
                Poll::Ready(Verdict::Park) => return Poll::Ready(Driven::Parked),
                Poll::Ready(Verdict::TryOn) => {}
                // What it does then, it does when polled again.
                Poll::Ready(Verdict::WindDown) => wind_down(Pin::new(&mut *conversation)),
            }
        }
    })
    .await
}

/// The status hyper has answered a head with that was no request.
fn malformed(error: &hyper::Error) -> Option<StatusCode> {
    match error {
        error if error.is_parse_too_large() => Some(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE),
        error if error.is_parse() => Some(StatusCode::BAD_REQUEST),
        _ => None,
    }
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

/// hyper's least buffer.
const MIN_BUFFER: usize = 8 * 1024;

/// What hyper allows when it is not told.
const HYPER_MAX_HEADERS: usize = 100;

/// What a client may send on one stream, and on all streams, before we have read it: buffers we may come to hold.
const STREAM_WINDOW: u32 = 64 * 1024 - 1;
const CONNECTION_WINDOW: u32 = 256 * 1024;

/// Requests at a time on one connection; browsers use less.
const MAX_STREAMS: u32 = 128;

/// What waits on one stream for its client to read.
const SEND_BUFFER: usize = 32 * 1024;
