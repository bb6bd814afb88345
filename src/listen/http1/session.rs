//! One client's connection over HTTP/1.1, request after request.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use http::{Method, StatusCode, Version};
use http_body::Body;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::body::Http1RequestBody;
use super::head_reader::HeadReader;
use super::response_writer::ResponseWriter;
use super::shared_channel::{AfterResponse, SharedChannel};
use crate::listen::client_stream::Channel;
use crate::listen::connection::{Phase, Progress};
use crate::listen::http1::body::Http1Tunnel;
use crate::listen::http1::response_writer::Http1InterimSender;
use crate::listen::{
    Connection, ConnectionSettings, IncomingBody, IncomingRequest, InterimSender, OnUpgrade, Refusal, RefusedHead,
    RequestHandler, Response, ResponseBody, Upgraded, handler,
};
use crate::wire::http1::grammar::{BodyLength, WriteBuffer};
use crate::wire::http1::server;
use crate::wire::http1::server::{BodySize, ParsedRequest, RequestTraits};
use crate::words::turn;

/// In bytes: a body that is not longer, and is at hand, is written with its head.
const SHORT_BODY: u64 = 8192;

/// A connection that speaks HTTP/1.1. `respond` makes the future of a response of `handler`, `F`.
pub(in crate::listen) struct Http1Session<'c, S, F, H: RequestHandler> {
    connection: &'c Arc<Connection>,
    handler: &'c H,
    respond: S,
    channel: Arc<Mutex<SharedChannel>>,
    head_reader: HeadReader,
    state: State<F, H::Body>,
    request: RequestTraits,
    upgrade: Option<oneshot::Sender<Upgraded>>,
    out: WriteBuffer,
}

enum State<F, B> {
    /// Before a request, or within its head.
    ReadingHead,
    Responding(F),
    Writing(ResponseWriter<B>),
    /// The response is written. The body of the request may not be read to its end.
    Written,
}

impl<'c, S, F, H> Http1Session<'c, S, F, H>
where
    S: Fn(IncomingRequest, InterimSender) -> F,
    F: Future<Output = Response<H::Body>> + Unpin,
    H: RequestHandler,
{
    /// `read` are bytes that were read to recognize the protocol.
    pub(in crate::listen) fn new(
        connection: &'c Arc<Connection>,
        settings: &ConnectionSettings,
        channel: Channel,
        read: BytesMut,
        handler: &'c H,
        respond: S,
    ) -> Self {
        Self {
            connection,
            handler,
            respond,
            channel: Arc::new(Mutex::new(SharedChannel::new(Arc::clone(connection), channel, read))),
            head_reader: HeadReader::new(settings),
            state: State::ReadingHead,
            request: RequestTraits {
                is_head: false,
                version: Version::HTTP_11,
                keeps_alive: false,
                accepts_trailers: false,
            },
            upgrade: None,
            out: WriteBuffer::default(),
        }
    }

    /// Goes as far as it can, and updates the connection's `Progress`.
    pub(in crate::listen) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<SessionEnd> {
        loop {
            match &mut self.state {
                State::ReadingHead => {
                    let head = ready!(self.head_reader.poll(&mut self.channel.lock(), self.progress(), cx));
                    match head {
                        Ok(Some(parsed)) => {
                            self.begin(parsed);
                            if turn::stops(cx) {
                                return Poll::Pending;
                            }
                        }
                        Ok(None) => return Poll::Ready(SessionEnd::Broken),
                        Err(refused) => self.refuse(*refused),
                    }
                }
                State::Responding(response) => match turn::polled(|| Pin::new(response).poll(cx)) {
                    (Poll::Ready(response), _) => {
                        self.send(response);
                        if turn::stops(cx) {
                            return Poll::Pending;
                        }
                    }
                    (Poll::Pending, true) => return Poll::Pending,
                    (Poll::Pending, false) => {
                        let had_left = self.connection.has_left();
                        if let Poll::Ready(end) = self.poll_failed(cx) {
                            return Poll::Ready(end);
                        }
                        if had_left || !self.connection.has_left() {
                            return Poll::Pending;
                        }
                        // The client left just now: the handler must learn of it in this poll.
                    }
                },
                State::Writing(_) => {
                    if let Some(end) = ready!(self.poll_send(cx)) {
                        return Poll::Ready(end);
                    }
                }
                State::Written => match self.channel.lock().after_response(cx) {
                    AfterResponse::RestOfBody => return Poll::Pending,
                    AfterResponse::NextRequest => self.state = State::ReadingHead,
                    AfterResponse::Close => return Poll::Ready(SessionEnd::Finished),
                },
            }
        }
    }

    fn progress(&self) -> &'c Progress {
        &self.connection.progress
    }

    fn begin(&mut self, parsed: ParsedRequest) {
        let ParsedRequest { head, framing, .. } = parsed;
        self.progress().begin();
        self.channel.lock().begin(framing.body);
        let body = match framing.body {
            BodyLength::Known(0) => IncomingBody::default(),
            length => Http1RequestBody::new(Arc::clone(&self.channel), length).into(),
        };
        self.request = RequestTraits {
            is_head: head.method == Method::HEAD,
            version: head.version,
            keeps_alive: framing.keeps_alive,
            accepts_trailers: framing.options.trailers,
        };
        let interim = match head.version {
            Version::HTTP_11 => Http1InterimSender::new(Arc::clone(&self.channel)).into(),
            _ => InterimSender::default(),
        };
        let upgrade = framing.options.upgrade.then(|| {
            let (sender, upgrade) = OnUpgrade::pair();
            self.upgrade = Some(sender);
            upgrade
        });
        let request = IncomingRequest { head, body, upgrade };
        self.state = State::Responding((self.respond)(request, interim));
    }

    /// Ready when the connection failed, so that no response can reach the client.
    fn poll_failed(&self, cx: &mut Context<'_>) -> Poll<SessionEnd> {
        self.channel.lock().poll_failed(cx).map(|()| SessionEnd::Broken)
    }

    fn refuse(&mut self, refused: RefusedHead) {
        self.progress().enter(Phase::Head);
        let status = refused.status;
        let Refusal { fields, body } = self.handler.refuse(self.connection, refused);
        server::write_refusal(status, &fields, &body, &mut self.out, handler::write);
        self.state = State::Writing(ResponseWriter::without_body(SessionEnd::Refused));
    }

    fn send(&mut self, response: Response<H::Body>) {
        let Response { mut head, mut body } = response;
        // This drops the handler's future, which may abandon the body of the request.
        self.state = State::Written;
        // A client that learns from the response that it is the last one sends no further request on this connection.
        self.request.keeps_alive &= !self.connection.is_retiring() && !self.channel.lock().is_lost();
        let size = BodySize::of(body.is_end_stream(), &body.size_hint());
        let mut framing = server::write_head(&mut head, size, self.request, &mut self.out, handler::write);
        if let Some(BodyLength::Known(length)) = framing.body
            && length <= SHORT_BODY
            && body.write_whole(self.out.small(), length)
        {
            framing.body = None;
        }
        self.out.shrink();
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            self.progress().enter(Phase::Tunnel);
            self.state = State::Writing(ResponseWriter::without_body(SessionEnd::Upgraded));
        } else {
            self.upgrade = None;
            self.state = State::Writing(ResponseWriter::new(body, framing));
        }
    }

    /// Writes the response. `None`: another request may follow.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Option<SessionEnd>> {
        let State::Writing(writer) = &mut self.state else { return Poll::Ready(None) };
        loop {
            let mut must_wait = false;
            // The next part of the body is not polled before the client took the parts before.
            if !self.connection.progress.write_blocked() {
                must_wait = writer.fill(cx, &mut self.out).is_pending();
            }
            match self.channel.lock().poll_write(cx, &mut self.out) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => return Poll::Ready(Some(SessionEnd::Broken)),
                Poll::Pending => must_wait = true,
            }
            if must_wait {
                return self.poll_failed(cx).map(Some);
            }
            if writer.body.is_none() && self.out.is_empty() {
                break;
            }
        }
        let end = writer.end;
        // Its memory goes back to the pool.
        self.out = WriteBuffer::default();
        if end.is_none() {
            self.progress().enter(Phase::Idle);
            self.state = State::Written;
        }
        Poll::Ready(end)
    }
}

impl<S, F, H: RequestHandler> Http1Session<'_, S, F, H> {
    /// Takes the connection back from the body of the request, if it is still read.
    pub(in crate::listen) fn into_channel(self) -> Option<Channel> {
        self.channel.lock().take().map(|(channel, _)| channel)
    }

    /// Gives the connection to the task that awaits the upgrade. Without one it is closed.
    pub(in crate::listen) fn hand_over(mut self) {
        let parts = self.channel.lock().take();
        if let (Some((channel, read)), Some(upgrade)) = (parts, self.upgrade.take()) {
            drop(upgrade.send(Http1Tunnel::new(channel, read).into()));
        }
    }

    /// Whether only a reset shows the client that the response in progress is not whole.
    pub(in crate::listen) fn must_reset(&self) -> bool {
        matches!(&self.state, State::Writing(writer) if writer.would_look_whole(&self.out))
    }

    /// Whether the client may have sent something that is unread when the connection closes.
    pub(in crate::listen) fn is_unread(&self) -> bool {
        self.channel.lock().is_unread()
    }
}

impl<S, F, H: RequestHandler> Drop for Http1Session<'_, S, F, H> {
    /// Closes the connection, even if a task still reads the body.
    fn drop(&mut self) {
        let channel = self.channel.lock().take();
        if let Some((mut channel, _)) = channel
            && self.connection.progress.phase() == Phase::Idle
        {
            // Between two requests nothing is cut short: a TLS client gets a `close_notify`.
            channel.send_close_notify();
        }
    }
}

// How a session of HTTP/1.1 ends.

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::listen) enum SessionEnd {
    /// The last response is written. What the client still sends is not read.
    Finished,
    /// A refusal answered an invalid head.
    Refused,
    /// The client has left, between two requests or within one.
    Broken,
    /// The response broke off.
    CutShort,
    /// The connection speaks another protocol now.
    Upgraded,
}
