//! One request and its response over HTTP/2, as a task of its own.

use std::error::Error;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http::header::{CONTENT_LENGTH, DATE};
use http::{HeaderMap, StatusCode};
use http_body::{Body, Frame};
use parking_lot::Mutex;

use crate::listen::http2::tunnel::PendingTunnel;
use crate::listen::session::log_panic;
use crate::listen::{Connection, ConnectionSettings, Refusal, Response, handler};
use crate::wire::head::{KnownName, ResponseHead};
use crate::wire::http2::poll_room;
use crate::words::coalesce::CoalescingBody;
use crate::words::timer::ProgressTimeout;

/// The task of one stream. Dropped before the response is complete, it resets the stream; the connection and its other
/// streams go on.
#[derive(Debug)]
pub(super) struct RequestStream<F, B> {
    respond: SendResponse<Bytes>,
    state: State<F, B>,
    interim: Http2InterimSender,
    /// For a request that asks for a tunnel.
    tunnel: Option<PendingTunnel>,
    settings: Arc<ConnectionSettings>,
    backlog: WriteBacklog,
    open: OpenStream,
}

#[derive(Debug)]
enum State<F, B> {
    Responding(F),
    /// On the heap: its timers take no memory before the response begins.
    Writing(Box<StreamWriter<B>>),
}

impl<F, B> RequestStream<F, B>
where
    F: Future<Output = Response<B>> + Unpin,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    pub(super) fn new(
        respond: SendResponse<Bytes>,
        response: F,
        interim: Http2InterimSender,
        tunnel: Option<PendingTunnel>,
        open: OpenStream,
        settings: Arc<ConnectionSettings>,
        backlog: WriteBacklog,
    ) -> Self {
        Self { respond, state: State::Responding(response), interim, tunnel, settings, backlog, open }
    }

    fn poll_on(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match &mut self.state {
                State::Writing(writer) => return writer.poll(cx),
                State::Responding(response) => match poll_if_room(&self.backlog, Pin::new(response), cx) {
                    Poll::Ready(response) => match self.begin(response, cx) {
                        Some(writer) => self.state = State::Writing(Box::new(writer)),
                        None => return Poll::Ready(()),
                    },
                    Poll::Pending => {
                        self.send_interim(cx);
                        if let Some(tunnel) = &mut self.tunnel {
                            tunnel.fill(cx);
                        }
                        // The client may reset the stream before there is a response.
                        return self.respond.poll_reset(cx).map(|_| ());
                    }
                },
            }
        }
    }

    /// Sends the queued interim responses.
    fn send_interim(&mut self, cx: &Context<'_>) {
        for head in self.interim.take(cx) {
            let response = interim(head);
            self.backlog.add_head(response.headers());
            // A failure shows with the response.
            let _ = self.respond.send_informational(response);
        }
    }

    /// Sends the head. `None`: no body follows.
    fn begin(&mut self, response: Response<B>, cx: &Context<'_>) -> Option<StreamWriter<B>> {
        self.send_interim(cx);
        let Response { head, body } = response;
        let opens_tunnel = head.status == StatusCode::SWITCHING_PROTOCOLS;
        let is_all = body.is_end_stream() && !opens_tunnel;
        let head = response_head(head, &body);
        self.backlog.answer(head.headers());
        // Fails if the client has reset the stream.
        let stream = self.respond.send_response(head, is_all).ok()?;
        if opens_tunnel {
            self.tunnel.take()?.open(stream, self.open.clone(), self.backlog.clone());
            return None;
        }
        (!is_all).then(|| StreamWriter::new(body, stream, &self.settings, self.backlog.clone()))
    }
}

/// Polls the response only while the client reads the responses before.
fn poll_if_room<F: Future>(backlog: &WriteBacklog, response: Pin<&mut F>, cx: &mut Context<'_>) -> Poll<F::Output> {
    ready!(backlog.poll_room(cx));
    response.poll(cx)
}

impl<F, B> Future for RequestStream<F, B>
where
    F: Future<Output = Response<B>> + Unpin,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        catch_unwind(AssertUnwindSafe(|| self.poll_on(cx))).unwrap_or_else(|panic| {
            log_panic(&*panic);
            Poll::Ready(())
        })
    }
}

// The heads of responses over HTTP/2.

const CONNECTION_FIELDS: [KnownName; 6] = [
    KnownName::CONNECTION,
    KnownName::KEEP_ALIVE,
    KnownName::PROXY_CONNECTION,
    KnownName::TE,
    KnownName::TRANSFER_ENCODING,
    KnownName::UPGRADE,
];

/// Makes the head of a response: removes the fields of HTTP/1.1 connections, adds date and length.
pub(super) fn response_head(mut head: ResponseHead, body: &impl Body) -> http::Response<()> {
    if head.status == StatusCode::SWITCHING_PROTOCOLS {
        // The status that opens a tunnel (RFC 8441, section 5).
        head.status = StatusCode::OK;
    }
    let mut response = without_connection_fields(head);
    let fields = response.headers_mut();
    if !fields.contains_key(DATE) {
        fields.insert(DATE, handler::value());
    }
    if let Some(length) = body.size_hint().exact().filter(|_| !body.is_end_stream())
        && !fields.contains_key(CONTENT_LENGTH)
    {
        fields.insert(CONTENT_LENGTH, length.into());
    }
    response
}

/// The head of an interim response.
pub(super) fn interim(head: ResponseHead) -> http::Response<()> {
    without_connection_fields(head)
}

/// The head of the response to an invalid head.
pub(super) fn refusal(status: StatusCode, Refusal { fields, body }: &Refusal) -> http::Response<()> {
    let mut head = http::Response::new(());
    *head.status_mut() = status;
    *head.headers_mut() = fields.to_header_map();
    head.headers_mut().insert(CONTENT_LENGTH, body.len().into());
    head.headers_mut().insert(DATE, handler::value());
    head
}

fn without_connection_fields(mut head: ResponseHead) -> http::Response<()> {
    for name in CONNECTION_FIELDS {
        head.fields.remove(name);
    }
    let mut response = http::Response::new(());
    *response.status_mut() = head.status;
    *response.headers_mut() = head.fields.to_header_map();
    response
}

// Sends interim responses of HTTP/2.

/// Responses in the queue; further ones are dropped.
const MAX_QUEUED: usize = 16;

/// Passes interim responses to the task of the stream.
#[derive(Clone, Debug, Default)]
pub(in crate::listen) struct Http2InterimSender(Arc<Mutex<InterimQueue>>);

#[derive(Debug, Default)]
struct InterimQueue {
    responses: Vec<ResponseHead>,
    stream: Option<Waker>,
}

impl Http2InterimSender {
    pub(in crate::listen) fn send(&self, head: ResponseHead) {
        let mut queue = self.0.lock();
        if queue.responses.len() < MAX_QUEUED {
            queue.responses.push(head);
        }
        if let Some(stream) = queue.stream.take() {
            stream.wake();
        }
    }

    /// The responses so far. The task is woken for further ones.
    pub(super) fn take(&self, cx: &Context<'_>) -> Vec<ResponseHead> {
        let mut queue = self.0.lock();
        if !queue.stream.as_ref().is_some_and(|stream| stream.will_wake(cx.waker())) {
            queue.stream = Some(cx.waker().clone());
        }
        mem::take(&mut queue.responses)
    }
}

// Counts the open streams of a connection, and the bytes of their heads.

/// Counts a stream and its head until it is dropped.
#[derive(Debug)]
pub(super) struct OpenStream {
    connection: Arc<Connection>,
    head: usize,
}

impl OpenStream {
    pub(super) fn new(connection: &Arc<Connection>, head: usize) -> Self {
        connection.progress.stream_opened(head);
        Self { connection: Arc::clone(connection), head }
    }
}

impl Clone for OpenStream {
    /// Counts the stream once more, without the head, which is kept once.
    fn clone(&self) -> Self {
        Self::new(&self.connection, 0)
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.connection.progress.stream_closed(self.head);
    }
}

// The bytes of responses that h2 was given and has not written to the socket yet.

/// In bytes: many short responses, or the send buffers of a few streams.
const MAX_BACKLOG: usize = 512 * 1024;

/// In bytes: what each field counts beside its text (RFC 9113, section 6.5.2).
const OVERHEAD: usize = 32;

/// Counts these bytes, and the streams that wait until they are fewer. All of them fit into the client's windows, so they are
/// written as soon as the client reads. The lock is for the compiler: connection and streams are on one core.
#[derive(Clone, Debug, Default)]
pub(super) struct WriteBacklog(Arc<Mutex<BacklogState>>);

#[derive(Debug, Default)]
struct BacklogState {
    bytes: usize,
    /// Streams whose answers have begun since that was asked.
    answered: u32,
    /// The tasks of waiting streams, in the order of their arrival.
    streams: Vec<Waker>,
}

impl WriteBacklog {
    /// Ready when there is room. A single part or head may exceed the limit.
    pub(super) fn poll_room(&self, cx: &Context<'_>) -> Poll<()> {
        let mut queue = self.0.lock();
        if queue.bytes < MAX_BACKLOG {
            return Poll::Ready(());
        }
        if !queue.streams.iter().any(|stream| stream.will_wake(cx.waker())) {
            queue.streams.push(cx.waker().clone());
        }
        Poll::Pending
    }

    pub(super) fn add(&self, bytes: usize) {
        self.0.lock().bytes += bytes;
    }

    /// Adds a head, as HTTP/2 counts its size.
    pub(super) fn add_head(&self, fields: &HeaderMap) {
        self.add(fields.iter().map(|(name, value)| name.as_str().len() + value.len() + OVERHEAD).sum());
    }

    /// The answer of a stream has begun.
    pub(super) fn answer(&self, fields: &HeaderMap) {
        self.add_head(fields);
        self.0.lock().answered += 1;
    }

    /// How many answers have begun since the last call.
    pub(super) fn take_answered(&self) -> u32 {
        mem::take(&mut self.0.lock().answered)
    }

    /// Notes a write of any bytes to the socket.
    pub(super) fn wrote(&self, bytes: usize) {
        let mut queue = self.0.lock();
        let left = queue.bytes.saturating_sub(bytes);
        queue.set(left);
    }

    /// Everything is written.
    pub(super) fn clear(&self) {
        self.0.lock().set(0);
    }
}

impl BacklogState {
    fn set(&mut self, bytes: usize) {
        self.bytes = bytes;
        if bytes < MAX_BACKLOG {
            mem::take(&mut self.streams).into_iter().for_each(Waker::wake);
        }
    }
}

// Writes the body of a response to a stream, as its window allows.

/// Why a body broke off.
pub(super) type BoxError = Box<dyn Error + Send + Sync>;

#[derive(Debug)]
pub(super) struct StreamWriter<B> {
    body: CoalescingBody<B>,
    stream: SendStream<Bytes>,
    /// The part that has no room in the window yet, and whether it is the last.
    part: Option<(Bytes, bool)>,
    /// The body broke off. The client gets the parts before.
    has_broken_off: bool,
    /// For a client that does not read.
    timeout: ProgressTimeout,
    backlog: WriteBacklog,
}

impl<B> StreamWriter<B>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    pub(super) fn new(
        body: B,
        stream: SendStream<Bytes>,
        settings: &ConnectionSettings,
        backlog: WriteBacklog,
    ) -> Self {
        let timeout = ProgressTimeout::new(settings.body_idle, settings.body_rate);
        Self { body: CoalescingBody::new(body), stream, part: None, has_broken_off: false, timeout, backlog }
    }

    /// Ready when everything is sent, when the client has gone, and when it reads nothing, or too little, for too long.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.has_broken_off {
                self.stream.send_reset(Reason::INTERNAL_ERROR);
                return Poll::Ready(());
            }
            if self.stream.poll_reset(cx).is_ready() {
                return Poll::Ready(());
            }
            if let Some((part, is_last)) = self.part.take() {
                if poll_room(&mut self.stream, cx).is_pending() {
                    self.part = Some((part, is_last));
                    return self.timeout.poll_expired(cx);
                }
                self.timeout.moved(part.len());
                self.backlog.add(part.len());
                if self.stream.send_data(part, is_last).is_err() || is_last {
                    return Poll::Ready(());
                }
            }
            ready!(self.backlog.poll_room(cx));
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if self.take(frame) {
                        return Poll::Ready(());
                    }
                }
                Some(Err(_)) => {
                    // In the next poll: a reset in this one would drop the parts that h2 has not written yet.
                    self.has_broken_off = true;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                None => {
                    drop(self.stream.send_data(Bytes::new(), true));
                    return Poll::Ready(());
                }
            }
        }
    }

    /// Takes a frame of the body. Whether it was the last.
    fn take(&mut self, frame: Frame<Bytes>) -> bool {
        match frame.into_data() {
            Ok(data) if data.is_empty() => {}
            Ok(data) => {
                // One byte, not all: window that is reserved for this stream is not available to others.
                self.stream.reserve_capacity(1);
                self.part = Some((data, self.body.is_end_stream()));
            }
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    self.backlog.add_head(&trailers);
                    drop(self.stream.send_trailers(trailers));
                    return true;
                }
            }
        }
        false
    }
}
