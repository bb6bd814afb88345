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
use http::{HeaderMap, StatusCode};
use http_body::{Body, Frame};
use parking_lot::Mutex;

use crate::listen::http2::frame_writer::{SentHead, WriteBacklog};
use crate::listen::http2::tunnel::PendingTunnel;
use crate::listen::session::log_panic;
use crate::listen::{Connection, ConnectionSettings, Refusal, Response, handler};
use crate::wire::head::{Fields, KnownName, ResponseHead};
use crate::wire::http2::{OF_CONNECTIONS, poll_room};
use crate::words::coalesce::CoalescingBody;
use crate::words::digits::push_decimal;
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
            let (stream, stub) = (self.respond.stream_id().as_u32(), stub(head.status));
            self.backlog.add_head(stream, interim(head));
            // A failure shows with the response.
            if self.respond.send_informational(stub).is_err() {
                self.backlog.take_back_head(stream);
            }
        }
    }

    /// Sends the head. `None`: no body follows.
    fn begin(&mut self, response: Response<B>, cx: &Context<'_>) -> Option<StreamWriter<B>> {
        self.send_interim(cx);
        let Response { head, body } = response;
        let opens_tunnel = head.status == StatusCode::SWITCHING_PROTOCOLS;
        let is_all = body.is_end_stream() && !opens_tunnel;
        let stream = answer(&mut self.respond, response_head(head, &body), is_all, &self.backlog).ok()?;
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

/// Begins the answer of a stream. Fails if the client has reset the stream. `is_all`: no body follows.
pub(super) fn answer(
    respond: &mut SendResponse<Bytes>,
    head: SentHead,
    is_all: bool,
    backlog: &WriteBacklog,
) -> Result<SendStream<Bytes>, h2::Error> {
    let stream = respond.stream_id().as_u32();
    backlog.answer(stream, head);
    let sent = respond.send_response(stub(StatusCode::OK), is_all);
    if sent.is_err() {
        backlog.take_back_head(stream);
    }
    sent
}

/// What h2 is given in place of a head.
fn stub(status: StatusCode) -> http::Response<()> {
    let mut stub = http::Response::new(());
    *stub.status_mut() = status;
    stub
}

/// Makes the head of a response: removes the fields of HTTP/1.1 connections, adds date and length.
fn response_head(mut head: ResponseHead, body: &impl Body) -> SentHead {
    if head.status == StatusCode::SWITCHING_PROTOCOLS {
        // The status that opens a tunnel (RFC 8441, section 5).
        head.status = StatusCode::OK;
    }
    let fields = &mut head.fields;
    remove_fields_of_connections(fields);
    add_date(fields);
    if let Some(length) = body.size_hint().exact().filter(|_| !body.is_end_stream())
        && !fields.has(KnownName::CONTENT_LENGTH)
    {
        add_length(fields, length);
    }
    SentHead { status: Some(head.status), fields: head.fields }
}

/// The head of an interim response.
fn interim(mut head: ResponseHead) -> SentHead {
    remove_fields_of_connections(&mut head.fields);
    SentHead { status: Some(head.status), fields: head.fields }
}

/// The head of the response to an invalid head, and its body.
pub(super) fn refusal(status: StatusCode, refusal: Refusal) -> (SentHead, Bytes) {
    let Refusal { mut fields, body } = refusal;
    fields.remove(KnownName::CONTENT_LENGTH);
    add_length(&mut fields, body.len() as u64);
    add_date(&mut fields);
    (SentHead { status: Some(status), fields }, body)
}

fn remove_fields_of_connections(fields: &mut Fields) {
    fields.remove_any(OF_CONNECTIONS);
    fields.remove(KnownName::TE);
}

fn add_date(fields: &mut Fields) {
    if !fields.has(KnownName::DATE) {
        fields.append_with(KnownName::DATE, handler::write);
    }
}

fn add_length(fields: &mut Fields, length: u64) {
    fields.append_with(KnownName::CONTENT_LENGTH, |text| push_decimal(text, length));
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
                    let stream = self.stream.stream_id().as_u32();
                    self.backlog.add_head(stream, SentHead { status: None, fields: Fields::from(&trailers) });
                    if self.stream.send_trailers(HeaderMap::new()).is_err() {
                        self.backlog.take_back_head(stream);
                    }
                    return true;
                }
            }
        }
        false
    }
}
