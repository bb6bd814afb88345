//! One request and its answer, a task of its own, with an end to waiting for a client that opens a stream and does not
//! read it.

use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use bytes::Bytes;
use h2::server::SendResponse;
use http::Response;
use http::StatusCode;
use http_body::Body;

use super::ahead::Ahead;
use super::answer;
use super::sending::Fault;
use super::sending::Sending;
use super::tunnel::Wanted;
use super::unwritten::Unwritten;
use crate::listen::Connection;
use crate::listen::Settings;
use crate::listen::conversation::log_panic;

/// A stream as long as it is there. Dropped before its answer is through, it is reset; the connection and its other
/// streams go on.
#[derive(Debug)]
pub(super) struct Stream<F, B> {
    respond: SendResponse<Bytes>,
    at: At<F, B>,
    ahead: Ahead,
    /// What becomes of it where it asks for a tunnel.
    tunnel: Option<Wanted>,
    settings: Arc<Settings>,
    unwritten: Unwritten,
    open: Open,
}

#[derive(Debug)]
enum At<F, B> {
    Answering(Pin<Box<F>>),
    /// It has timers, which an answer that is awaited has no use for.
    Sending(Box<Sending<B>>),
}

impl<F, B> Stream<F, B>
where
    F: Future<Output = Response<B>>,
    B: Body<Data = Bytes, Error: Into<Fault>> + Unpin,
{
    pub(super) fn new(
        respond: SendResponse<Bytes>,
        answer: F,
        ahead: Ahead,
        tunnel: Option<Wanted>,
        open: Open,
        settings: Arc<Settings>,
        unwritten: Unwritten,
    ) -> Self {
        Self { respond, at: At::Answering(Box::pin(answer)), ahead, tunnel, settings, unwritten, open }
    }

    fn poll_on(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match &mut self.at {
                At::Sending(sending) => return sending.poll(cx),
                At::Answering(answer) => match poll_where_read(&self.unwritten, answer.as_mut(), cx) {
                    Poll::Ready(response) => match self.begin(response, cx) {
                        Some(sending) => self.at = At::Sending(Box::new(sending)),
                        None => return Poll::Ready(()),
                    },
                    Poll::Pending => {
                        self.inform(cx);
                        if let Some(tunnel) = &mut self.tunnel {
                            tunnel.fill(cx);
                        }
                        // The client may give up before there is an answer.
                        return self.respond.poll_reset(cx).map(|_| ());
                    }
                },
            }
        }
    }

    /// Sends what goes ahead of the answer.
    fn inform(&mut self, cx: &Context<'_>) {
        for answer in self.ahead.take(cx) {
            self.unwritten.add_head(answer.headers());
            // Nothing depends on it.
            let _ = self.respond.send_informational(answer);
        }
    }

    /// Sends the head. `None`: nothing follows it.
    fn begin(&mut self, response: Response<B>, cx: &Context<'_>) -> Option<Sending<B>> {
        self.inform(cx);
        let (parts, body) = response.into_parts();
        let opens_tunnel = parts.status == StatusCode::SWITCHING_PROTOCOLS;
        let is_all = body.is_end_stream() && !opens_tunnel;
        let head = answer::head(parts, &body);
        self.unwritten.add_head(head.headers());
        // That the client has gone shows with the next part.
        let stream = self.respond.send_response(head, is_all).ok()?;
        if opens_tunnel {
            self.tunnel.take()?.open(stream, self.open.clone(), self.unwritten.clone());
            return None;
        }
        (!is_all).then(|| Sending::new(body, stream, &self.settings, self.unwritten.clone()))
    }
}

/// No request goes on of a client that does not read its answers.
fn poll_where_read<F: Future>(unwritten: &Unwritten, answer: Pin<&mut F>, cx: &mut Context<'_>) -> Poll<F::Output> {
    ready!(unwritten.poll_room(cx));
    answer.poll(cx)
}

impl<F, B> Future for Stream<F, B>
where
    F: Future<Output = Response<B>>,
    B: Body<Data = Bytes, Error: Into<Fault>> + Unpin,
{
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        catch_unwind(AssertUnwindSafe(|| self.poll_on(cx))).unwrap_or_else(|panic| {
            log_panic(&*panic);
            Poll::Ready(())
        })
    }
}

/// Counts a stream, and its head, as long as it is there.
#[derive(Debug)]
pub(super) struct Open {
    connection: Arc<Connection>,
    head: usize,
}

impl Open {
    pub(super) fn new(connection: &Arc<Connection>, head: usize) -> Self {
        connection.progress.stream_opened(head);
        Self { connection: Arc::clone(connection), head }
    }
}

impl Clone for Open {
    /// Without the head, which is kept once.
    fn clone(&self) -> Self {
        Self::new(&self.connection, 0)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.connection.progress.stream_closed(self.head);
    }
}
