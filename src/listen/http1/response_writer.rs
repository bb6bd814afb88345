//! Writes a response.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use http_body::Body;
use parking_lot::Mutex;

use crate::listen::http1::session::SessionEnd;
use crate::listen::http1::shared_channel::SharedChannel;
use crate::wire::head::ResponseHead;
use crate::wire::http1::grammar::{BodyEncoder, BodyLength, WriteBuffer};
use crate::wire::http1::server::{ResponseFraming, is_allowed_trailer};

/// A response that is being written.
#[derive(Debug)]
pub(super) struct ResponseWriter<B> {
    /// `None`: the whole body is in the write buffer.
    pub(super) body: Option<B>,
    encoder: BodyEncoder,
    /// The announced trailers.
    trailers: Vec<HeaderName>,
    /// How the session ends after this response. `None`: another request may follow.
    pub(super) end: Option<SessionEnd>,
}

impl<B> ResponseWriter<B> {
    /// For the body of a response whose head is written.
    pub(super) fn new(body: B, framing: ResponseFraming) -> Self {
        let ResponseFraming { body: length, keeps_alive, trailers } = framing;
        let end = if keeps_alive { None } else { Some(SessionEnd::Finished) };
        let encoder = BodyEncoder::new(length.unwrap_or(BodyLength::Known(0)));
        Self { body: length.map(|_| body), encoder, trailers, end }
    }

    /// For a response without a body, after which the session ends.
    pub(super) fn without_body(end: SessionEnd) -> Self {
        Self { body: None, encoder: BodyEncoder::new(BodyLength::Known(0)), trailers: Vec::new(), end: Some(end) }
    }

    /// Whether the response lacks a part, and would look whole if the connection ended now. `out`: what is not written yet.
    pub(super) fn would_look_whole(&self, out: &WriteBuffer) -> bool {
        let lacks_a_part = self.body.is_some() || self.end == Some(SessionEnd::CutShort) || !out.is_empty();
        self.encoder.ends_with_connection() && lacks_a_part
    }
}

impl<B> ResponseWriter<B>
where
    B: Body<Data = Bytes> + Unpin,
{
    /// Puts the next parts of the body into the write buffer. Pending: the body has no next part yet.
    pub(super) fn fill(&mut self, cx: &mut Context<'_>, out: &mut WriteBuffer) -> Poll<()> {
        while out.has_room() {
            let Some(body) = &mut self.body else { break };
            match ready!(Pin::new(&mut *body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    let is_complete = body.is_end_stream() || frame.is_trailers();
                    let trailers = match frame.into_data() {
                        Ok(data) => {
                            self.encoder.part(data, out);
                            None
                        }
                        Err(frame) => frame.into_trailers().ok(),
                    };
                    if is_complete || self.encoder.is_complete() {
                        self.finish(trailers, out);
                    }
                }
                None => self.finish(None, out),
                // The client gets the parts before the error.
                Some(Err(_)) => {
                    self.body = None;
                    self.end = Some(SessionEnd::CutShort);
                }
            }
        }
        Poll::Ready(())
    }

    fn finish(&mut self, trailers: Option<HeaderMap>, out: &mut WriteBuffer) {
        self.body = None;
        // Trailers that were not announced are dropped.
        let is_announced = |name: &HeaderName| self.trailers.contains(name) && is_allowed_trailer(name);
        let trailers = trailers.map(|mut trailers| {
            let others: Vec<HeaderName> = trailers.keys().filter(|name| !is_announced(name)).cloned().collect();
            for name in others {
                trailers.remove(name);
            }
            trailers
        });
        if self.encoder.end(trailers.as_ref(), out).is_err() {
            self.end = Some(SessionEnd::CutShort);
        }
    }
}

// Sends interim responses of HTTP/1.1.

/// Sends interim responses to the client of one request.
#[derive(Clone, Debug)]
pub(in crate::listen) struct Http1InterimSender(Arc<Mutex<SharedChannel>>);

impl Http1InterimSender {
    pub(super) fn new(channel: Arc<Mutex<SharedChannel>>) -> Self {
        Self(channel)
    }

    pub(in crate::listen) fn send(&self, head: &ResponseHead) {
        self.0.lock().send_interim(head);
    }
}
