//! Reads a body from the client: counts its bytes and checks its bounds.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use std::{fmt, mem};

use bytes::Bytes;
use http::{HeaderMap, Version};
use http_body::{Body, Frame, SizeHint};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::gateway::body::described_body::DescribedBody;
use crate::gateway::body::expect::{BodyProgress, ContinueGate};
use crate::gateway::body::request_body::ReplayBuffer;
use crate::gateway::fault::BadRequest;
use crate::gateway::headers;
use crate::gateway::snapshot::GatewaySettings;
use crate::listen::{Budget, BudgetShare, IncomingBody, IncomingBodyError, InterimSender, SHARE_FREE};
use crate::words::timer::ProgressTimeout;

/// The most bytes that one frame has: the body may be longer by this than the part that is read.
pub(super) const MAX_FRAME: usize = 16 * 1024;

/// How long to wait for room. Bytes that a client sent on other streams meanwhile may take the room of the streams that
/// it waits for.
pub(super) const MAX_WAIT_FOR_ROOM: Duration = Duration::from_secs(1);

/// A body that is being read from `source`.
#[derive(Debug)]
pub(super) struct StreamingBody<B> {
    pub(super) source: B,
    /// Bytes that were read ahead, and are not sent yet.
    pub(super) replay: Bytes,
    pub(super) trailers: Option<HeaderMap>,
    /// Bytes that were sent, kept for another attempt.
    pub(super) sent: ReplayBuffer,
    /// Whether the source has ended.
    pub(super) has_ended: bool,
    /// Sends the 100 that the client waits for, if it waits for one.
    pub(super) interim: Option<InterimSender>,
    pub(super) gate: Option<ContinueGate>,
    pub(super) progress: BodyProgress,
    /// The longest allowed length; `None`: any length.
    pub(super) most: Option<u64>,
    patience: ProgressTimeout,
}

/// The body broke off; its [`BodyProgress`] knows why.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BodyAborted;

impl fmt::Display for BodyAborted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client's body broke off")
    }
}

impl Error for BodyAborted {}

impl<B: Body<Data = Bytes> + Unpin> StreamingBody<B> {
    pub(super) fn new(source: B, bounds: BodyBounds) -> Self {
        Self {
            source,
            replay: Bytes::new(),
            trailers: None,
            sent: ReplayBuffer::default(),
            has_ended: false,
            interim: None,
            gate: None,
            progress: BodyProgress::default(),
            most: bounds.length,
            patience: ProgressTimeout::new(bounds.idle, bounds.rate),
        }
    }

    /// The bytes that were read ahead, then the rest.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyAborted>>> {
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

    /// The next frame of the source. Counts it and checks the bounds.
    pub(super) fn poll_source(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyAborted>>> {
        let frame = match Pin::new(&mut self.source).poll_frame(cx) {
            Poll::Ready(frame) => frame,
            Poll::Pending if self.gate.is_some() => return Poll::Pending,
            Poll::Pending => {
                if let Some(interim) = self.interim.take() {
                    interim.send_continue();
                }
                ready!(self.patience.poll_expired(cx));
                return self.break_off(BadRequest::Slow);
            }
        };
        // A client that sends is not waiting for a 100.
        self.interim = None;
        let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
        self.patience.moved(data.map_or(0, Bytes::len));
        match frame {
            // After the client has left, a dropped connection looks like the end of the body.
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

    /// Whether the body needs a share of the budget: because of the bytes that were read, or of its declared length.
    pub(super) fn needs_budget(&self, read: usize) -> bool {
        read.max(usize::try_from(self.source.size_hint().lower()).unwrap_or(usize::MAX)) > SHARE_FREE
    }

    /// Waits, in line with other bodies of the connection, for room for all bytes that may be read.
    pub(super) async fn find_room(
        &self,
        read: usize,
        at_most: usize,
        budget: &Budget,
    ) -> Result<BudgetShare, BadRequest> {
        let whole = at_most.saturating_add(MAX_FRAME);
        let left = self.source.size_hint().upper().and_then(|left| usize::try_from(left).ok());
        let bytes = left.map_or(whole, |left| whole.min(read.saturating_add(left)));
        let share = budget.share(bytes, whole);
        timeout(MAX_WAIT_FOR_ROOM, share).await.map_err(|_| BadRequest::NoRoom)
    }

    fn break_off(&mut self, fault: BadRequest) -> Poll<Option<Result<Frame<Bytes>, BodyAborted>>> {
        self.progress.fail(fault);
        Poll::Ready(Some(Err(BodyAborted)))
    }
}

// The bounds of a request's body.

/// How long and how slow a body may be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BodyBounds {
    /// `None`: any length.
    pub length: Option<u64>,
    /// How long the client may send nothing.
    pub idle: Duration,
    /// The lowest rate in bytes per second, measured over each `idle` span after the first in which the gateway waits
    /// for the client; zero: any rate.
    pub rate: u32,
}

impl BodyBounds {
    /// The bounds from the configuration.
    pub fn of(settings: &GatewaySettings) -> Self {
        Self { length: settings.max_body, idle: settings.body_idle, rate: settings.body_rate }
    }
}

// The body as the client sends it.

/// By then the answer was sent, in a packet of its own.
const RESET_DELAY: Duration = Duration::from_millis(100);

/// The body that a client sends.
#[derive(Debug)]
pub struct ClientBody(BodySource);

#[derive(Debug)]
enum BodySource {
    /// Only while this is dropped.
    Taken,
    /// From the connection of the client.
    Incoming {
        body: IncomingBody,
        is_stream: bool,
    },
    Described(DescribedBody),
}

impl ClientBody {
    /// The body of a request of this version.
    pub fn new(incoming: IncomingBody, version: Version) -> Self {
        Self(BodySource::Incoming { body: incoming, is_stream: version == Version::HTTP_2 })
    }

    /// Whether reading the body makes the proxy send it. The body is then read only if a rule needs it.
    pub fn comes_on_demand(&self) -> bool {
        matches!(&self.0, BodySource::Described(body) if body.comes_on_demand())
    }
}

impl From<DescribedBody> for ClientBody {
    fn from(body: DescribedBody) -> Self {
        Self(BodySource::Described(body))
    }
}

impl Body for ClientBody {
    type Data = Bytes;
    type Error = IncomingBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, IncomingBodyError>>> {
        match &mut self.0 {
            BodySource::Incoming { body, .. } => Pin::new(body).poll_frame(cx),
            BodySource::Described(body) => body.poll_frame(cx),
            BodySource::Taken => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            BodySource::Incoming { body, .. } => body.is_end_stream(),
            BodySource::Described(body) => body.is_end_stream(),
            BodySource::Taken => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            BodySource::Incoming { body, .. } => body.size_hint(),
            BodySource::Described(body) => body.size_hint(),
            BodySource::Taken => SizeHint::with_exact(0),
        }
    }
}

impl Drop for ClientBody {
    /// Dropping an HTTP/2 body that was not read to its end resets its stream, right behind the answer. Clients that
    /// read both at once (curl before version 8) take the reset for a failure and show no answer. So the reset is sent
    /// later.
    fn drop(&mut self) {
        let BodySource::Incoming { body, is_stream: true } = mem::replace(&mut self.0, BodySource::Taken) else {
            return;
        };
        if body.is_end_stream() {
            return;
        }
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                tokio::time::sleep(RESET_DELAY).await;
                drop(body);
            });
        }
    }
}
