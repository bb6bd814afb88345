//! The body of a response: none, the gateway's own, or the application's.

use std::error::Error;
use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::StatusCode;
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use tracing::warn;

use crate::gateway::body::expect::ContinueSignal;
use crate::gateway::exchange::Exchange;
use crate::gateway::headers;
use crate::gateway::outcome_watch::{OutcomeWatch, is_bodiless};
use crate::gateway::reservation::Answered;
use crate::listen;
use crate::listen::BudgetShare;
use crate::rules::outcome::Outcome;
use crate::rules::outcome::inspection::BodyEnd;
use crate::upstream::UpstreamBody;
use crate::wire::head::{Fields, KnownName};
use crate::words::coalesce::BodyBuffer;
use crate::words::pool::{Buffer, Pooled, pool_of};

/// The body that a client gets.
#[derive(Debug)]
pub enum ResponseBody {
    Empty,
    /// A configured page or text.
    Full(Bytes),
    /// Written for this request.
    Written(Buffer),
    Relayed(Pooled<RelayedBody>),
    /// The application's, on a route with an outcome.
    Inspected(InspectedBody),
    /// Written while it is read, as by a service that answers other proxies. It may have trailers.
    Streamed(UnsyncBoxBody<Bytes, BoxError>),
}

impl ResponseBody {
    /// `watch`: the outcome of the answer, if it is not known yet.
    pub fn relay(
        body: UpstreamBody,
        exchange: Pooled<Exchange>,
        continue_signal: Option<ContinueSignal>,
        watch: Option<OutcomeWatch>,
    ) -> Self {
        let relay = RelayedBody::new(body, exchange, continue_signal);
        match watch {
            None => Self::Relayed(Pooled::new(relay)),
            Some(watch) => Self::Inspected(InspectedBody::new(relay, watch)),
        }
    }

    /// Waits for the outcome, and takes the device cookie that the answer sets.
    pub async fn take_device_cookie(&mut self) -> Option<String> {
        match self {
            Self::Empty | Self::Full(_) | Self::Written(_) | Self::Streamed(_) => None,
            Self::Relayed(relay) => relay.exchange.take_device_cookie(),
            Self::Inspected(inspected) => Box::pin(inspected.look_ahead()).await?.take_device_cookie(),
        }
    }

    /// The client left before it got the head.
    #[must_use]
    pub fn without_client(mut self) -> Self {
        match &mut self {
            Self::Empty | Self::Full(_) | Self::Written(_) | Self::Streamed(_) => {}
            Self::Relayed(relay) => relay.exchange.lose_client(),
            Self::Inspected(inspected) => inspected.without_client(),
        }
        self
    }
}

impl listen::ResponseBody for ResponseBody {
    fn write_whole(&mut self, out: &mut Vec<u8>, length: u64) -> bool {
        match self {
            Self::Written(content) if content.len() as u64 == length => out.extend_from_slice(content),
            Self::Relayed(relay) => return relay.write_whole(out, length),
            _ => return false,
        }
        true
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        match this {
            Self::Empty => Poll::Ready(None),
            Self::Full(content) => {
                let content = mem::take(content);
                *this = Self::Empty;
                Poll::Ready(Some(Ok(Frame::data(content))))
            }
            Self::Written(content) => {
                let content = Bytes::copy_from_slice(content);
                *this = Self::Empty;
                Poll::Ready(Some(Ok(Frame::data(content))))
            }
            Self::Relayed(relay) => relay.poll_frame(cx),
            Self::Inspected(inspected) => inspected.poll_frame(cx),
            Self::Streamed(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Full(content) => content.is_empty(),
            Self::Written(content) => content.is_empty(),
            Self::Relayed(relay) => relay.is_end_stream(),
            Self::Inspected(inspected) => inspected.is_end_stream(),
            Self::Streamed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Full(content) => SizeHint::with_exact(content.len() as u64),
            Self::Written(content) => SizeHint::with_exact(content.len() as u64),
            Self::Relayed(relay) => relay.size_hint(),
            Self::Inspected(inspected) => inspected.size_hint(),
            Self::Streamed(body) => body.size_hint(),
        }
    }
}

// Relays the body of an application's answer.

pub(in crate::gateway) type BoxError = Box<dyn Error + Send + Sync>;

/// The body of an application's answer while it streams. The exchange ends with it.
#[derive(Debug)]
pub struct RelayedBody {
    pub(super) body: UpstreamBody,
    pub(in crate::gateway) exchange: Pooled<Exchange>,
    /// Kept until the answer has ended, so that a body that the application never asked for does not close the
    /// connection during the answer.
    _continue_signal: Option<ContinueSignal>,
    /// Whether the client is still connected, so that bytes count as sent.
    counts_bytes: bool,
}

pool_of!(RelayedBody);

impl RelayedBody {
    pub(in crate::gateway) fn new(
        body: UpstreamBody,
        exchange: Pooled<Exchange>,
        continue_signal: Option<ContinueSignal>,
    ) -> Self {
        Self { body, exchange, _continue_signal: continue_signal, counts_bytes: true }
    }

    /// The client has left: bytes from now on are not sent.
    pub(super) fn stop_counting(&mut self) {
        self.counts_bytes = false;
    }

    /// Writes the whole body, if all of it is at hand and it has this length.
    pub(in crate::gateway) fn write_whole(&mut self, out: &mut Vec<u8>, length: u64) -> bool {
        let is_written = self.body.write_whole(out, length);
        if is_written && self.counts_bytes {
            self.exchange.add_bytes_out(length);
        }
        is_written
    }

    pub(in crate::gateway) fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    pub(in crate::gateway) fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }

    pub(in crate::gateway) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
            Some(Ok(mut frame)) => {
                if let Some(data) = frame.data_ref() {
                    if self.counts_bytes {
                        self.exchange.add_bytes_out(data.len() as u64);
                    }
                } else if let Some(trailers) = frame.trailers_mut() {
                    headers::filter_trailers(trailers);
                }
                Some(Ok(frame))
            }
            // The client's answer is cut short as well: its connection closes before the end of the body.
            Some(Err(error)) => Some(Err(self.cut_short(error.into()))),
            None => None,
        })
    }

    fn cut_short(&mut self, error: BoxError) -> BoxError {
        self.exchange.cut_short();
        warn!(
            request_id = self.exchange.facts.request_id.as_str(),
            server = self.exchange.server(),
            %error,
            "the application's answer was cut short",
        );
        error
    }
}

// The body of an answer that is inspected for its outcome while it streams.

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
        while stream.watch.is_inspecting() && stream.relay.exchange.reservation.holds_head() {
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
            stream.watch.settled(&mut stream.relay.exchange.reservation).await;
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
            stream.relay.exchange.lose_client();
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
        ready!(self.watch.poll_settled(cx, &mut self.relay.exchange.reservation));
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
        let reservation = &mut self.relay.exchange.reservation;
        match &frame {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    self.watch.feed(reservation, data);
                }
                self.has_ended = frame.is_trailers() || self.relay.body.is_end_stream();
            }
            Some(Err(_)) => self.watch.conclude(reservation, BodyEnd::Cut, true),
            None => self.has_ended = true,
        }
        if self.has_ended {
            self.watch.conclude(reservation, BodyEnd::Whole, true);
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
            self.watch.settled(&mut self.relay.exchange.reservation).await;
        }
    }
}

impl Drop for InspectedBody {
    fn drop(&mut self) {
        let Some(stream) = self.0.take().filter(|stream| stream.watch.is_inspecting()) else { return };
        if let Some(progress) = stream.relay.exchange.received() {
            progress.abandon();
        }
        let worker = Arc::clone(&stream.relay.exchange.worker);
        worker.spawn_detached(stream.read_on());
    }
}

// An answer of the application that a proxy forwards itself, and shows.

/// A shown answer, watched for its outcome. The exchange ends with it.
#[derive(Debug)]
pub struct ShownAnswer {
    exchange: Pooled<Exchange>,
    watch: Option<OutcomeWatch>,
}

/// How much of the body the outcome and the concurrency slots need.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NeededBody {
    Nothing,
    /// While it passes.
    Stream,
    /// Before the client gets the head: a success sets a cookie in it, or gives a session.
    BeforeHead,
}

/// The side that answered in place of the application, which gave no answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unanswered {
    /// The application never got the request.
    NotSent,
    /// The application may have got it.
    MaybeSent,
}

impl ShownAnswer {
    /// Begins with the head, as the application sent it. `is_through`: there is no body. Returns when the store has recorded
    /// what the head alone frees.
    pub async fn begin(mut exchange: Pooled<Exchange>, status: StatusCode, fields: &Fields, is_through: bool) -> Self {
        exchange.answer(status);
        exchange.renew_sessions(fields);
        let mut watch = OutcomeWatch::begin(&mut exchange, status, fields, is_through);
        if let Some(watch) = &mut watch {
            if is_through {
                // The answer has only a head. It may stand for a body that was not sent.
                let ending = if is_bodiless(&exchange, status) { BodyEnd::Cut } else { BodyEnd::Whole };
                watch.conclude(&mut exchange.reservation, ending, true);
            }
            watch.settled(&mut exchange.reservation).await;
        }
        Self { exchange, watch }
    }

    /// Records that the proxy answered by itself, for this reason.
    pub async fn missing(
        mut exchange: Pooled<Exchange>,
        status: StatusCode,
        unanswered: Unanswered,
        reason: &str,
    ) -> Self {
        exchange.answer(status);
        exchange.refuse(format!("the application did not answer: {reason}"));
        let outcome = match unanswered {
            Unanswered::NotSent => Some(Outcome::Neither),
            Unanswered::MaybeSent => None,
        };
        let answered = Answered { outcome, ..Answered::default() };
        exchange.reservation.settle(answered, false).await;
        Self { exchange, watch: None }
    }

    pub fn needed_body(&self) -> NeededBody {
        match &self.watch {
            Some(watch) if watch.is_inspecting() && self.exchange.reservation.holds_head() => NeededBody::BeforeHead,
            Some(watch) if watch.is_inspecting() => NeededBody::Stream,
            // Without the body, its end would not be seen.
            _ if self.exchange.reservation.holds_slots() => NeededBody::Stream,
            _ => NeededBody::Nothing,
        }
    }

    /// Takes the next part of the body. Returns when the store has said whose a success is.
    pub async fn feed(&mut self, data: &[u8]) {
        self.exchange.add_bytes_out(data.len() as u64);
        if let Some(watch) = &mut self.watch {
            watch.feed(&mut self.exchange.reservation, data);
            if watch.is_signing_in() {
                watch.settled(&mut self.exchange.reservation).await;
            }
        }
    }

    /// The body has ended, or no more of it is shown. Returns when the store has recorded what the outcome frees.
    pub async fn end(&mut self, ending: BodyEnd) {
        if let Some(watch) = &mut self.watch {
            watch.conclude(&mut self.exchange.reservation, ending, ending == BodyEnd::Whole);
            watch.settled(&mut self.exchange.reservation).await;
        }
    }

    /// The fields that the gateway adds to the head: the state of limits, and the id of the request.
    pub fn own_fields(&self) -> Fields {
        let mut fields = Fields::default();
        self.exchange.live.ratelimit_headers.write(&mut fields, &self.exchange.decided().report);
        fields.append(KnownName::X_REQUEST_ID, self.exchange.facts.request_id.as_bytes());
        fields
    }

    /// The device cookie that the head sets after a success. `None` on a second call.
    pub fn take_device_cookie(&mut self) -> Option<String> {
        self.exchange.take_device_cookie()
    }
}
