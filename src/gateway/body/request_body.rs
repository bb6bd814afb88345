//! The body of a request on its way to the application. Its start can be read before, and its bytes can be sent again.

use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::timeout;

use crate::gateway::body::expect::{BodyProgress, ContinueGate};
use crate::gateway::body::streaming_body::{BodyAborted, BodyBounds, ClientBody, StreamingBody};
use crate::gateway::fault::BadRequest;
use crate::listen::{Budget, BudgetShare, InterimSender};
use crate::upstream::ReplayBody;
use crate::words::coalesce::BodyBuffer;

/// Longer than most forms. Closing the connection is cheaper than reading a longer body.
const MAX_DISCARDED: u64 = 64 * 1024;

/// Many clients send the body in a packet of its own, right behind the head.
const MAX_DISCARDING: Duration = Duration::from_millis(500);

/// The body of a request, read from `B`. A request without a body allocates nothing.
#[derive(Debug)]
pub struct RequestBody<B = ClientBody>(Option<Box<StreamingBody<B>>>);

/// The start of a body, read before it is forwarded.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Peeked {
    pub start: Bytes,
    /// Whether `start` is the whole body.
    pub is_whole: bool,
}

impl<B> RequestBody<B>
where
    B: Body<Data = Bytes> + Unpin,
{
    pub fn new(source: B, bounds: BodyBounds) -> Self {
        if source.is_end_stream() {
            return Self(None);
        }
        Self(Some(Box::new(StreamingBody::new(source, bounds))))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// In bytes: at least so much of it will come.
    pub fn announced_length(&self) -> u64 {
        self.0.as_ref().map_or(0, |body| body.source.size_hint().lower())
    }

    /// The counter of its bytes; `None` for a request without a body.
    pub fn progress(&self) -> Option<BodyProgress> {
        self.0.as_ref().map(|body| body.progress.clone())
    }

    /// Reads until the body ends or `at_most` bytes were read, and keeps them for the application. All bodies of a
    /// connection together may keep as much as its budget allows, beside the short ones. A body that finds no room soon
    /// is refused.
    pub async fn peek(&mut self, at_most: usize, budget: &Budget) -> Result<Peeked, BadRequest> {
        let Some(body) = &mut self.0 else { return Ok(Peeked { start: Bytes::new(), is_whole: true }) };
        let mut read = BodyBuffer::expecting(at_most);
        let mut share = None;
        while read.len() < at_most && !body.has_ended {
            if share.is_none() && body.needs_budget(read.len()) {
                share = Some(body.find_room(read.len(), at_most, budget).await?);
            }
            let Some(frame) = poll_fn(|cx| body.poll_source(cx)).await else { break };
            match frame.map_err(|BodyAborted| body.progress.fault().unwrap_or(BadRequest::Body))?.into_data() {
                Ok(data) => read.put(data),
                Err(frame) => body.trailers = frame.into_trailers().ok(),
            }
            // A body of known length has ended with its last byte.
            body.has_ended |= body.source.is_end_stream();
        }
        // A proxy that describes a body may show only its start.
        let is_whole = body.has_ended && read.len() <= at_most && body.source.size_hint().lower() == 0;
        body.replay = BudgetShare::of(share, read.into_bytes());
        Ok(Peeked { start: body.replay.slice(..at_most.min(body.replay.len())), is_whole })
    }

    /// The client sent `Expect: 100-continue`: it gets a 100 when the body is read and has not come without one.
    pub fn expect_continue(&mut self, interim: InterimSender) {
        if let Some(body) = &mut self.0 {
            body.interim = Some(interim);
        }
    }

    /// Whether the client still waits for a 100.
    pub fn expects_continue(&self) -> bool {
        self.0.as_ref().is_some_and(|body| body.interim.is_some())
    }

    /// Keeps the body back until the application asks for it.
    pub fn wait_for(&mut self, gate: ContinueGate) {
        if let Some(body) = &mut self.0 {
            body.gate = Some(gate);
        }
    }

    /// Reads the rest of an unwanted body, so that the connection can be kept, unless the rest is too long or too slow.
    /// Returns whether the body ended.
    pub async fn discard(mut self) -> bool {
        let Some(body) = &mut self.0 else { return true };
        let is_long = body.source.size_hint().lower() > MAX_DISCARDED;
        if body.interim.is_some() || is_long {
            return false;
        }
        body.most = Some(body.progress.bytes() + MAX_DISCARDED);
        let drain = async {
            while !body.has_ended && !body.source.is_end_stream() {
                if poll_fn(|cx| body.poll_source(cx)).await.is_some_and(|frame| frame.is_err()) {
                    return false;
                }
            }
            true
        };
        timeout(MAX_DISCARDING, drain).await.unwrap_or(false)
    }
}

impl RequestBody {
    /// Whether reading the body makes the proxy send it. The body is then read only if a rule needs it.
    pub fn comes_on_demand(&self) -> bool {
        self.0.as_ref().is_some_and(|body| body.source.comes_on_demand())
    }
}

impl<B> Default for RequestBody<B> {
    fn default() -> Self {
        Self(None)
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for RequestBody<B> {
    type Data = Bytes;
    type Error = BodyAborted;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyAborted>>> {
        let Some(body) = &mut self.0 else { return Poll::Ready(None) };
        if let Some(gate) = &mut body.gate {
            match gate.poll_open(cx) {
                Poll::Ready(Ok(())) => body.gate = None,
                Poll::Ready(Err(_)) => return Poll::Ready(Some(Err(BodyAborted))),
                Poll::Pending if gate.is_closed() => return Poll::Pending,
                Poll::Pending => {}
            }
        }
        // A body that comes unasked is sent on, though the application has not asked for it yet.
        let frame = ready!(body.poll_next(cx));
        if let Some(gate) = body.gate.take() {
            gate.open();
        }
        if let Some(Ok(frame)) = &frame {
            body.sent.push(frame);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(|body| {
            body.replay.is_empty() && body.trailers.is_none() && (body.has_ended || body.source.is_end_stream())
        })
    }

    fn size_hint(&self) -> SizeHint {
        let Some(body) = &self.0 else { return SizeHint::with_exact(0) };
        if body.trailers.is_some() {
            return SizeHint::new();
        }
        let replayed = body.replay.len() as u64;
        let rest = if body.has_ended { Some(0) } else { body.source.size_hint().exact() };
        rest.map_or_else(SizeHint::new, |rest| SizeHint::with_exact(replayed + rest))
    }
}

impl<B: Body> ReplayBody for RequestBody<B> {
    fn keep(&mut self) {
        let Some(body) = &mut self.0 else { return };
        let is_here = body.has_ended || body.source.is_end_stream();
        body.sent.keep(is_here);
    }

    fn replay(&mut self) -> bool {
        let Some(body) = &mut self.0 else { return true };
        let Some(sent) = body.sent.take() else { return false };
        // Bytes that were read ahead are sent first and at once, so none are left once anything was sent.
        if !sent.is_empty() {
            body.replay = sent;
        }
        true
    }

    fn stop_keeping(&mut self) {
        if let Some(body) = &mut self.0 {
            body.sent.clear();
        }
    }
}

// Keeps the bytes of a body that were sent, up to a bound, so that they can be sent again.

/// Longer than most forms.
pub(super) const MAX_KEPT: usize = 16 * 1024;

/// The bytes of a body that were sent since `keep` was called.
#[derive(Debug, Default)]
pub(super) struct ReplayBuffer {
    parts: BodyBuffer,
    /// How many more bytes may be kept; `None` when nothing is kept.
    room: Option<usize>,
}

impl ReplayBuffer {
    /// Starts to keep the bytes that are sent. `is_in_memory`: the whole body is in memory already, so all of it is
    /// kept; else only its start is kept.
    pub(super) fn keep(&mut self, is_in_memory: bool) {
        let room = if is_in_memory { usize::MAX } else { MAX_KEPT };
        *self = Self { parts: BodyBuffer::expecting(MAX_KEPT), room: Some(room) };
    }

    pub(super) fn push(&mut self, frame: &Frame<Bytes>) {
        let Some(room) = self.room else { return };
        match frame.data_ref().and_then(|data| Some((data, room.checked_sub(data.len())?))) {
            Some((data, left)) => {
                self.parts.put(data.clone());
                self.room = Some(left);
            }
            // Trailers are not kept, and neither is a body beyond the bound.
            None => self.clear(),
        }
    }

    /// Takes all bytes that were sent; `None` when they were not kept.
    pub(super) fn take(&mut self) -> Option<Bytes> {
        let Self { parts, room } = mem::take(self);
        room.map(|_| parts.into_bytes())
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
