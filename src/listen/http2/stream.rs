//! One request and its response over HTTP/2, as a task of its own.

use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use bytes::Bytes;
use h2::server::SendResponse;
use http::StatusCode;
use http_body::Body;

use super::interim::Http2InterimSender;
use super::open_stream::OpenStream;
use super::pending_tunnel::PendingTunnel;
use super::response_head;
use super::stream_writer::BoxError;
use super::stream_writer::StreamWriter;
use super::write_backlog::WriteBacklog;
use crate::listen::Response;
use crate::listen::Settings;
use crate::listen::panic::log_panic;

/// The task of one stream. Dropped before the response is complete, it resets the stream; the connection and its other
/// streams go on.
#[derive(Debug)]
pub(super) struct RequestStream<F, B> {
    respond: SendResponse<Bytes>,
    state: State<F, B>,
    interim: Http2InterimSender,
    /// For a request that asks for a tunnel.
    tunnel: Option<PendingTunnel>,
    settings: Arc<Settings>,
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
        settings: Arc<Settings>,
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
            let response = response_head::interim(head);
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
        let head = response_head::response_head(head, &body);
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
