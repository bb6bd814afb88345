//! One client's connection over HTTP/2: starts a task for each request.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use h2::server::{Builder, Connection as H2Connection, Handshake, SendResponse};
use h2::{Ping, PingPong, Reason, RecvStream};
use http::StatusCode;
use tokio::time::{Instant, sleep, timeout};

use super::frame_tap::{FrameTap, LeftChannel};
use super::head::{Http2RequestHead, ParsedHead};
use super::stream::RequestStream;
use crate::listen::client_stream::Channel;
use crate::listen::http2::frame_writer::WriteBacklog;
use crate::listen::http2::head_assembler::PendingHeads;
use crate::listen::http2::stream;
use crate::listen::http2::stream::{Http2InterimSender, OpenStream};
use crate::listen::http2::tunnel::PendingTunnel;
use crate::listen::watchdog::DRAIN_GRACE;
use crate::listen::{Connection, ConnectionSettings, IncomingBody, IncomingRequest, RefusedHead, RequestHandler};
use crate::wire::http2::Body;

/// A connection that speaks HTTP/2.
pub(in crate::listen) struct Http2Session<'c, H> {
    connection: &'c Arc<Connection>,
    settings: &'c Arc<ConnectionSettings>,
    handler: H,
    pending_heads: PendingHeads,
    backlog: WriteBacklog,
    left: LeftChannel,
    state: State,
    is_draining: bool,
    /// From then on no further request is served.
    last_call: Option<Instant>,
    /// `None` before the first PING.
    pings: Option<PingPong>,
}

enum State {
    Handshake(Handshake<FrameTap, Bytes>),
    Open(H2Connection<FrameTap, Bytes>),
}

impl<'c, H: RequestHandler> Http2Session<'c, H> {
    /// `read` are bytes that were read to recognize the protocol.
    pub(in crate::listen) fn new(
        connection: &'c Arc<Connection>,
        settings: &'c Arc<ConnectionSettings>,
        channel: Channel,
        read: BytesMut,
        handler: H,
    ) -> Self {
        let pending_heads = PendingHeads::default();
        let max_head = settings.max_header_bytes;
        let (backlog, left) = (WriteBacklog::default(), LeftChannel::default());
        let tap = FrameTap::new(
            channel,
            left.clone(),
            Arc::clone(connection),
            read,
            max_head,
            pending_heads.clone(),
            backlog.clone(),
        );
        let handshake = Builder::new()
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_concurrent_streams(MAX_STREAMS)
            .max_header_list_size(u32::try_from(max_head).unwrap_or(u32::MAX))
            .max_send_buffer_size(SEND_BUFFER)
            .enable_connect_protocol()
            .handshake(tap);
        Self {
            connection,
            settings,
            handler,
            pending_heads,
            backlog,
            left,
            state: State::Handshake(handshake),
            is_draining: false,
            last_call: None,
            pings: None,
        }
    }

    /// Goes as far as it can.
    pub(in crate::listen) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
        loop {
            let open = match &mut self.state {
                State::Open(open) => open,
                State::Handshake(handshake) => {
                    let mut open = ready!(Pin::new(handshake).poll(cx))?;
                    if self.is_draining {
                        open.graceful_shutdown();
                    }
                    self.state = State::Open(open);
                    continue;
                }
            };
            match open.poll_accept(cx)? {
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Ready(Some((request, respond))) => self.open(request.into_body(), respond),
                Poll::Pending => {
                    // If the socket is not full, h2 has written all that it was given.
                    if !self.connection.progress.write_blocked() {
                        self.backlog.clear();
                    }
                    self.pending_heads.drop_refused();
                    let Some(fault) = self.pending_heads.take_fault() else { return Poll::Pending };
                    open.abrupt_shutdown(fault);
                }
            }
        }
    }

    /// Takes the connection back from h2.
    pub(in crate::listen) fn into_channel(self) -> Option<Channel> {
        let left = self.left.clone();
        drop(self);
        left.take()
    }

    /// Finishes the requests in progress, and accepts no further ones: h2 does when the client has confirmed that it knows, and
    /// a client that never does gets a grace alone. Called again at each stage of a drain.
    pub(in crate::listen) fn start_drain(&mut self) {
        self.is_draining = true;
        if self.connection.is_drained() {
            self.last_call.get_or_insert_with(|| Instant::now() + DRAIN_GRACE);
        }
        if let State::Open(open) = &mut self.state {
            open.graceful_shutdown();
        }
    }

    /// Sends a PING, in the next poll. Before the last one is answered there is no other.
    pub(in crate::listen) fn ping(&mut self) {
        let State::Open(open) = &mut self.state else { return };
        if self.pings.is_none() {
            self.pings = open.ping_pong();
        }
        let Some(pings) = &mut self.pings else { return };
        // Takes the last answer. Any bytes from the client wake the connection.
        let _ = pings.poll_pong(&mut Context::from_waker(Waker::noop()));
        let _ = pings.send_ping(Ping::opaque());
    }

    fn open(&self, body: RecvStream, mut respond: SendResponse<Bytes>) {
        match self.pending_heads.take(respond.stream_id().as_u32()) {
            // It may be sent again, on another connection.
            Some(_) if self.last_call.is_some_and(|end| Instant::now() >= end) => {
                respond.send_reset(Reason::REFUSED_STREAM);
            }
            Some(ParsedHead::Request(head)) => self.serve(*head, body, respond),
            Some(ParsedHead::Refused(refused)) => self.refuse(*refused, body, respond),
            // Cannot happen: the head is pushed before h2 reads the stub of its stream.
            None => respond.send_reset(Reason::INTERNAL_ERROR),
        }
    }

    fn serve(&self, head: Http2RequestHead, body: RecvStream, mut respond: SendResponse<Bytes>) {
        let Http2RequestHead { head, length, asks_for_tunnel, size } = head;
        let heads = self.connection.progress.heads() + size;
        if heads > self.settings.max_header_bytes.saturating_mul(MAX_LARGEST_HEADS) {
            // The client may send it again: the handler has not seen it.
            return respond.send_reset(Reason::REFUSED_STREAM);
        }
        self.connection.progress.begin();
        let mut request = IncomingRequest { head, body: IncomingBody::default(), upgrade: None };
        let mut tunnel = None;
        if asks_for_tunnel {
            let (pending_tunnel, upgrade) = PendingTunnel::new(body);
            request.upgrade = Some(upgrade);
            tunnel = Some(pending_tunnel);
        } else if !body.is_end_stream() {
            request.body = Body::new(body, length).into();
        }
        let interim = Http2InterimSender::default();
        let response = self.handler.handle(Arc::clone(self.connection), request, interim.clone().into());
        let open = OpenStream::new(self.connection, size);
        let (settings, backlog) = (Arc::clone(self.settings), self.backlog.clone());
        tokio::spawn(RequestStream::new(respond, response, interim, tunnel, open, settings, backlog));
    }

    /// Answers an invalid head, and then resets its stream if the head was malformed.
    fn refuse(&self, refused: RefusedHead, body: RecvStream, mut respond: SendResponse<Bytes>) {
        self.connection.progress.begin();
        let status = refused.status;
        let is_malformed = status == StatusCode::BAD_REQUEST;
        let (head, answer) = stream::refusal(status, self.handler.refuse(self.connection, refused));
        let ends_with_head = !is_malformed && answer.is_empty();
        let open = OpenStream::new(self.connection, 0);
        let Ok(mut stream) = stream::answer(&mut respond, head, ends_with_head, &self.backlog) else { return };
        if !answer.is_empty() {
            // Fails if the stream has gone.
            let _ = stream.send_data(answer, !is_malformed);
        }
        if is_malformed {
            tokio::spawn(async move {
                // The body is read and dropped, so that it takes no window from other streams.
                let discarded = timeout(RESET_DELAY, discard(body));
                drop(tokio::join!(discarded, sleep(RESET_DELAY)));
                stream.send_reset(Reason::PROTOCOL_ERROR);
                drop(open);
            });
        }
    }
}

async fn discard(mut body: RecvStream) {
    while let Some(Ok(data)) = body.data().await {
        // Fails if the stream has gone.
        let _ = body.flow_control().release_capacity(data.len());
    }
}

/// A client that gets response and reset at once may ignore the response.
const RESET_DELAY: Duration = Duration::from_millis(100);

/// In bytes: what a client may send on one stream, and on all streams, before we read it.
const STREAM_WINDOW: u32 = 64 * 1024 - 1;

const CONNECTION_WINDOW: u32 = 256 * 1024;

/// Concurrent requests on one connection. Browsers use fewer.
const MAX_STREAMS: u32 = 128;

/// The heads of all concurrent requests may have as many bytes as this many heads of the largest size. The heads of
/// browsers are a tenth of that.
const MAX_LARGEST_HEADS: usize = 32;

/// In bytes: what waits on one stream for its client to read.
const SEND_BUFFER: usize = 32 * 1024;
