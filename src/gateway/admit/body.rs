//! The body of a request on its way to the application: peeked at, replayed, bounded in length and in silence.

mod client_body;
mod replay_buffer;

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::task::ready;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::Body;
use http_body::Frame;
use http_body::SizeHint;
use tokio::time::timeout;

pub use self::client_body::ClientBody;

use self::replay_buffer::ReplayBuffer;
use super::expect::ContinueGate;
use super::framing::BadRequest;
use super::progress::BodyProgress;
use crate::coalesce::BodyBuffer;
use crate::gateway::forward::headers;
use crate::gateway::settings::GatewaySettings;
use crate::listen::Budget;
use crate::listen::BudgetShare;
use crate::listen::InterimSender;
use crate::listen::SHARE_FREE;
use crate::timer::ProgressTimeout;

/// A request's body; nothing is allocated for a request without one. `B` is where it comes from.
#[derive(Debug)]
pub struct RequestBody<B = ClientBody>(Option<Box<Streaming<B>>>);

#[derive(Debug)]
struct Streaming<B> {
    source: B,
    /// What was read ahead, and not yet given on.
    replay: Bytes,
    trailers: Option<HeaderMap>,
    /// What was given on, where it may be needed again.
    given: ReplayBuffer,
    /// Nothing more comes from the source.
    has_ended: bool,
    /// The client may send nothing before it is asked to, this way.
    interim: Option<InterimSender>,
    gate: Option<ContinueGate>,
    progress: BodyProgress,
    /// It may be as long as this; `None`: any length.
    most: Option<u64>,
    /// With its sender.
    patience: ProgressTimeout,
}

/// What a body may cost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BodyBounds {
    /// `None`: any length.
    pub length: Option<u64>,
    /// How long its sender may be silent.
    pub idle: Duration,
    /// The least bytes per second, over each such time after the first in which its sender is awaited; zero: any.
    pub rate: u32,
}

impl BodyBounds {
    /// Those of the configuration.
    pub fn of(settings: &GatewaySettings) -> Self {
        Self { length: settings.max_body, idle: settings.body_idle, rate: settings.body_rate }
    }
}

/// What was read of a body before it is forwarded.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Peeked {
    pub start: Bytes,
    /// Whether `start` is all of it.
    pub is_whole: bool,
}

/// A body that broke off under its reader; the progress knows why.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BodyAborted;

impl fmt::Display for BodyAborted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client's body broke off")
    }
}

impl Error for BodyAborted {}

impl<B> RequestBody<B>
where
    B: Body<Data = Bytes> + Unpin,
{
    pub fn new(source: B, bounds: BodyBounds) -> Self {
        if source.is_end_stream() {
            return Self(None);
        }
        Self(Some(Box::new(Streaming {
            source,
            replay: Bytes::new(),
            trailers: None,
            given: ReplayBuffer::default(),
            has_ended: false,
            interim: None,
            gate: None,
            progress: BodyProgress::default(),
            most: bounds.length,
            patience: ProgressTimeout::new(bounds.idle, bounds.rate),
        })))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Where its bytes are counted; `None` for a request without a body.
    pub fn progress(&self) -> Option<BodyProgress> {
        self.0.as_ref().map(|body| body.progress.clone())
    }

    /// Reads until the body ends or `at_most` bytes are here, and keeps what it read for the application. Of what is more
    /// than a little, the bodies of a connection keep so much together; one that finds no room soon is refused.
    pub async fn peek(&mut self, at_most: usize, budget: &Budget) -> Result<Peeked, BadRequest> {
        let Some(body) = &mut self.0 else { return Ok(Peeked { start: Bytes::new(), is_whole: true }) };
        let mut read = BodyBuffer::expecting(at_most);
        let mut share = None;
        while read.len() < at_most && !body.has_ended {
            if share.is_none() && body.is_more_than_little(read.len()) {
                share = Some(body.find_room(read.len(), at_most, budget).await?);
            }
            let Some(frame) = poll_fn(|cx| body.poll_source(cx)).await else { break };
            match frame.map_err(|BodyAborted| body.progress.fault().unwrap_or(BadRequest::Body))?.into_data() {
                Ok(data) => read.put(data),
                Err(frame) => body.trailers = frame.into_trailers().ok(),
            }
            // A body whose length is known has ended with its last byte.
            body.has_ended |= body.source.is_end_stream();
        }
        let is_whole = body.has_ended && read.len() <= at_most;
        body.replay = BudgetShare::of(share, read.into_bytes());
        Ok(Peeked { start: body.replay.slice(..at_most.min(body.replay.len())), is_whole })
    }

    /// The client said `Expect: 100-continue`: it is asked for its body when that is read and does not come by itself.
    pub fn expect_continue(&mut self, interim: InterimSender) {
        if let Some(body) = &mut self.0 {
            body.interim = Some(interim);
        }
    }

    /// Whether the client still waits to be asked for its body.
    pub fn expects_continue(&self) -> bool {
        self.0.as_ref().is_some_and(|body| body.interim.is_some())
    }

    /// Holds the body back until the application wants it.
    pub fn wait_for(&mut self, gate: ContinueGate) {
        if let Some(body) = &mut self.0 {
            body.gate = Some(gate);
        }
    }

    /// Reads what is left of a body that nobody wants, so that the connection can go on, unless that is too long or
    /// too slow. Says whether the body ended.
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

/// What comes of a body at once, at the most: so much more than is looked at may be here.
const A_PART: usize = 16 * 1024;
/// In line for room. What a client has sent meanwhile on other streams keeps room from those that it waits for.
const FOR_ROOM: Duration = Duration::from_secs(1);

/// A form is shorter; what is longer is cheaper to cut.
const MAX_DISCARDED: u64 = 64 * 1024;
/// Many clients send the body in a packet of its own, right behind the head.
const MAX_DISCARDING: Duration = Duration::from_millis(500);

impl<B> Default for RequestBody<B> {
    fn default() -> Self {
        Self(None)
    }
}

impl<B: Body<Data = Bytes> + Unpin> Streaming<B> {
    /// What was read ahead, then the rest.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyAborted>>> {
        if !self.replay.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(mem::take(&mut self.replay)))));
        }
        if let Some(trailers) = self.trailers.take() {
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        if self.has_ended {
            return Poll::Ready(None);
        }
        self.poll_source(cx)
    }

    /// The next frame of the source, counted and bounded.
    fn poll_source(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyAborted>>> {
        let frame = match Pin::new(&mut self.source).poll_frame(cx) {
            Poll::Ready(frame) => frame,
            Poll::Pending if self.gate.is_some() => return Poll::Pending,
            Poll::Pending => {
                if let Some(interim) = self.interim.take() {
                    interim.invite();
                }
                ready!(self.patience.poll_expired(cx));
                return self.break_off(BadRequest::Slow);
            }
        };
        // Whoever sends does not wait.
        self.interim = None;
        let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
        self.patience.moved(data.map_or(0, Bytes::len));
        match frame {
            // Where the client has left, a connection that was dropped looks like the end of the body.
            None if self.progress.is_abandoned() && !self.source.is_end_stream() => self.break_off(BadRequest::Body),
            None => {
                self.has_ended = true;
                Poll::Ready(None)
            }
            Some(Err(_)) => self.break_off(BadRequest::Body),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => {
                    let total = self.progress.count(data.len());
                    if self.most.is_some_and(|most| total > most) {
                        return self.break_off(BadRequest::TooLong);
                    }
                    Poll::Ready(Some(Ok(Frame::data(data))))
                }
                Err(frame) => {
                    self.has_ended = true;
                    let Ok(mut trailers) = frame.into_trailers() else { return Poll::Ready(None) };
                    headers::filter_trailers(&mut trailers);
                    Poll::Ready(Some(Ok(Frame::trailers(trailers))))
                }
            },
        }
    }

    /// Whether so much was read, or will be as far as is known, that it has its share of the budget.
    fn is_more_than_little(&self, read: usize) -> bool {
        read.max(usize::try_from(self.source.size_hint().lower()).unwrap_or(usize::MAX)) > SHARE_FREE
    }

    /// Waits for room for all that may be read, in line with other bodies of the connection.
    async fn find_room(&self, read: usize, at_most: usize, budget: &Budget) -> Result<BudgetShare, BadRequest> {
        let whole = at_most.saturating_add(A_PART);
        let left = self.source.size_hint().upper().and_then(|left| usize::try_from(left).ok());
        let bytes = left.map_or(whole, |left| whole.min(read.saturating_add(left)));
        let share = budget.share(bytes, whole);
        timeout(FOR_ROOM, share).await.map_err(|_| BadRequest::NoRoom)
    }

    fn break_off(&mut self, fault: BadRequest) -> Poll<Option<Result<Frame<Bytes>, BodyAborted>>> {
        self.progress.fail(fault);
        Poll::Ready(Some(Err(BodyAborted)))
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
        // What has come by itself goes on though nobody asked for it yet.
        let frame = ready!(body.poll_next(cx));
        if let Some(gate) = body.gate.take() {
            gate.open();
        }
        if let Some(Ok(frame)) = &frame {
            body.given.note(frame);
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

#[cfg(test)]
mod tests;
