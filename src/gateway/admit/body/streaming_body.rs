//! Reads a body from the client: counts its bytes and checks its bounds.

use std::error::Error;
use std::fmt;
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
use tokio::time::timeout;

use super::bounds::BodyBounds;
use super::replay_buffer::ReplayBuffer;
use crate::gateway::admit::expect::ContinueGate;
use crate::gateway::admit::framing::BadRequest;
use crate::gateway::admit::progress::BodyProgress;
use crate::gateway::forward::headers;
use crate::listen::Budget;
use crate::listen::BudgetShare;
use crate::listen::InterimSender;
use crate::listen::SHARE_FREE;
use crate::timer::ProgressTimeout;

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
    pub(super) fn is_more_than_little(&self, read: usize) -> bool {
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

/// The most bytes that one frame has: the body may be longer by this than the part that is read.
pub(super) const MAX_FRAME: usize = 16 * 1024;

/// How long to wait for room. Bytes that a client sent on other streams meanwhile may take the room of the streams that
/// it waits for.
pub(super) const MAX_WAIT_FOR_ROOM: Duration = Duration::from_secs(1);
