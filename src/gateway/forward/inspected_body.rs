//! The body of an answer that is inspected for its outcome while it streams.

use std::future::poll_fn;
use std::mem;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use bytes::Bytes;
use http_body::Body;
use http_body::Frame;
use http_body::SizeHint;

use super::outcome_watch::OutcomeWatch;
use super::relayed_body::BoxError;
use super::relayed_body::RelayedBody;
use crate::coalesce::BodyBuffer;
use crate::gateway::exchange::Exchange;
use crate::listen::BudgetShare;
use crate::outcome::inspection::BodyEnd;

/// The body of an answer that is watched for its outcome. Each frame but the last is passed on at once. The last waits
/// until the store has recorded what frees the client. After the client has left, the rest is read as far as the
/// outcome needs.
#[derive(Debug)]
pub struct InspectedBody(Option<Box<InspectedStream>>);

#[derive(Debug)]
struct InspectedStream {
    relay: RelayedBody,
    watch: OutcomeWatch,
    /// The bytes that were read before the head was sent.
    ahead: Bytes,
    /// The trailers or the error after those bytes.
    behind: Option<Result<Frame<Bytes>, BoxError>>,
    /// The last frame, while it waits for the store.
    last: Option<Frame<Bytes>>,
    has_ended: bool,
}

impl InspectedBody {
    pub fn new(relay: RelayedBody, watch: OutcomeWatch) -> Self {
        let (ahead, behind) = (Bytes::new(), None);
        Self(Some(Box::new(InspectedStream { relay, watch, ahead, behind, last: None, has_ended: false })))
    }

    pub fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.0.as_mut().map_or(Poll::Ready(None), |stream| stream.poll_frame(cx))
    }

    /// Reads until the outcome is known, if the client gets the head only then. It reads no more than the outcome needs, and
    /// the upstream's timeouts bound each read.
    pub async fn look_ahead(&mut self) -> Option<&mut Exchange> {
        let stream = self.0.as_mut()?;
        let mut read = BodyBuffer::expecting(stream.relay.exchange.live.settings.inspect_body);
        let share = stream.watch.share.take();
        while stream.watch.is_inspecting() && stream.relay.exchange.holds_head() {
            let frame = poll_fn(|cx| stream.poll_relay(cx)).await;
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => read.put(data),
                Some(Ok(Err(frame))) => stream.behind = Some(Ok(frame)),
                Some(Err(fault)) => stream.behind = Some(Err(fault)),
                None => {}
            }
        }
        stream.ahead = BudgetShare::of(share, read.into_bytes());
        if stream.watch.is_signing_in() {
            stream.watch.settled(&mut stream.relay.exchange).await;
        }
        Some(&mut stream.relay.exchange)
    }

    pub fn is_end_stream(&self) -> bool {
        let is_through = |stream: &InspectedStream| {
            stream.ahead.is_empty() && stream.behind.is_none() && stream.last.is_none() && stream.relay.is_end_stream()
        };
        self.0.as_ref().is_none_or(|stream| is_through(stream))
    }

    pub fn size_hint(&self) -> SizeHint {
        let Some(stream) = &self.0 else { return SizeHint::with_exact(0) };
        if let Some(last) = stream.last.as_ref().and_then(Frame::data_ref) {
            return SizeHint::with_exact(last.len() as u64);
        }
        let rest = stream.relay.size_hint();
        let ahead = stream.ahead.len() as u64;
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + ahead);
        if let Some(most) = rest.upper() {
            hint.set_upper(most.saturating_add(ahead));
        }
        hint
    }

    /// The client left before it got the head.
    pub fn without_client(&mut self) {
        if let Some(stream) = &mut self.0 {
            stream.relay.exchange.clear_status();
        }
    }
}

impl InspectedStream {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(frame) = self.pop_ahead() {
            match frame {
                Ok(frame) if self.has_ended && self.behind.is_none() => self.last = Some(frame),
                frame => return Poll::Ready(Some(frame)),
            }
        } else if !self.has_ended {
            match ready!(self.poll_relay(cx)) {
                Some(Ok(frame)) if self.has_ended => self.last = Some(frame),
                None => {}
                frame => return Poll::Ready(frame),
            }
        }
        ready!(self.watch.poll_settled(cx, &mut self.relay.exchange));
        Poll::Ready(self.last.take().map(Ok))
    }

    /// The next frame that was read before the head was sent.
    fn pop_ahead(&mut self) -> Option<Result<Frame<Bytes>, BoxError>> {
        if self.ahead.is_empty() {
            return self.behind.take();
        }
        Some(Ok(Frame::data(mem::take(&mut self.ahead))))
    }

    /// The next frame of the application's body, inspected.
    fn poll_relay(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(self.relay.poll_frame(cx));
        let exchange = &mut self.relay.exchange;
        match &frame {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    self.watch.feed(exchange, data);
                }
                self.has_ended = frame.is_trailers() || self.relay.body.is_end_stream();
            }
            Some(Err(_)) => self.watch.conclude(exchange, BodyEnd::Cut, true),
            None => self.has_ended = true,
        }
        if self.has_ended {
            self.watch.conclude(exchange, BodyEnd::Whole, true);
        }
        Poll::Ready(frame)
    }

    /// Reads the rest only for the outcome.
    async fn read_on(mut self: Box<Self>) {
        self.relay.stop_counting();
        while self.watch.is_inspecting() {
            drop(poll_fn(|cx| self.poll_relay(cx)).await);
        }
        if self.watch.is_signing_in() {
            self.watch.settled(&mut self.relay.exchange).await;
        }
    }
}

impl Drop for InspectedBody {
    fn drop(&mut self) {
        let Some(stream) = self.0.take().filter(|stream| stream.watch.is_inspecting()) else { return };
        if let Some(progress) = stream.relay.exchange.body() {
            progress.abandon();
        }
        let worker = Arc::clone(&stream.relay.exchange.worker);
        worker.spawn_detached(stream.read_on());
    }
}
