//! Answers whose outcome is looked for while they stream.

use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use bytes::Bytes;
use http::HeaderMap;
use http::StatusCode;
use http_body::Body;
use http_body::Frame;
use http_body::SizeHint;

use super::relayed_body::BoxError;
use super::relayed_body::RelayedBody;
use crate::coalesce::BodyBuffer;
use crate::gateway::exchange::Exchange;
use crate::gateway::reservation::SettlementTask;
use crate::listen::Budget;
use crate::listen::BudgetShare;
use crate::listen::SHARE_FREE;
use crate::outcome::Inspection;
use crate::outcome::Outcome;
use crate::outcome::inspection;
use crate::outcome::inspection::BodyEnd;
use crate::record::ObservedOutcome;

/// What is still to be found out about an answer, and to be told. It ends with the answer.
#[derive(Debug)]
pub struct OutcomeWatch {
    /// `None`: the outcome is known.
    inspection: Option<Inspection>,
    settlement: SettlementTask,
    /// Of what its connection may keep of answers until they are understood.
    share: Option<BudgetShare>,
}

impl OutcomeWatch {
    /// Looks at the head of an answer, as the application sent it. `None`: nobody asks what it means. `is_through`: it
    /// has no body.
    pub fn begin(exchange: &mut Exchange, status: StatusCode, headers: &HeaderMap, is_through: bool) -> Option<Self> {
        let rule = exchange.outcome_rule()?;
        if let Some(outcome) = rule.of_head(status, headers) {
            return Some(Self {
                inspection: None,
                settlement: exchange.settle(ObservedOutcome::Known(outcome), is_through),
                share: None,
            });
        }
        let bound = exchange.live.settings.inspect_body;
        let inspection = Inspection::begin(Arc::clone(rule), status, headers, bound);
        Some(Self { inspection: Some(inspection), settlement: SettlementTask::default(), share: None })
    }

    /// Waits until what there is to be kept of a body, as far as its length is known, has room beside that of other
    /// answers of the connection.
    pub async fn find_room(&mut self, exchange: &Exchange, body: &SizeHint, budget: &Budget) {
        let whole = inspection::room(exchange.live.settings.inspect_body);
        let length = body.upper().and_then(|length| usize::try_from(length).ok()).map_or(whole, |it| it.min(whole));
        if self.inspection.is_some() && length > SHARE_FREE {
            // What is read ahead is kept beside what is looked at.
            let copies = if exchange.may_set_device_cookie() { 2 } else { 1 };
            self.share = Some(budget.share(length.saturating_mul(copies), whole).await);
        }
    }

    /// All that can be looked at has been, whether or not the request is through with that: returns when its client
    /// may hear of it.
    pub async fn end(mut self, exchange: &mut Exchange, ending: BodyEnd, is_through: bool) {
        self.conclude(exchange, ending, is_through);
        self.settlement.await;
    }

    /// What came of the body.
    fn feed(&mut self, exchange: &mut Exchange, data: &[u8]) {
        let Some(inspection) = &mut self.inspection else { return };
        inspection.feed(data);
        if inspection.is_full() {
            self.conclude(exchange, BodyEnd::Whole, false);
        }
    }

    fn conclude(&mut self, exchange: &mut Exchange, ending: BodyEnd, is_through: bool) {
        if let Some(inspection) = self.inspection.take() {
            self.share = None;
            self.settlement = exchange.settle(meaning(inspection.conclude(ending)), is_through);
        }
    }
}

fn meaning(outcome: Option<Outcome>) -> ObservedOutcome {
    outcome.map_or(ObservedOutcome::Unknown, ObservedOutcome::Known)
}

/// The body of such an answer: each part goes on at once, but the end not before the store knows what frees the client.
/// When its client leaves, the rest is read as far as the outcome needs.
#[derive(Debug)]
pub struct InspectedBody(Option<Box<Inner>>);

#[derive(Debug)]
struct Inner {
    relay: RelayedBody,
    watch: OutcomeWatch,
    /// What was read before the head was sent, and what ended it.
    ahead: Bytes,
    behind: Option<Result<Frame<Bytes>, BoxError>>,
    /// The last part, held back.
    last: Option<Frame<Bytes>>,
    has_ended: bool,
}

impl InspectedBody {
    pub fn new(relay: RelayedBody, watch: OutcomeWatch) -> Self {
        let (ahead, behind) = (Bytes::new(), None);
        Self(Some(Box::new(Inner { relay, watch, ahead, behind, last: None, has_ended: false })))
    }

    pub fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.0.as_mut().map_or(Poll::Ready(None), |inner| inner.poll_frame(cx))
    }

    /// Reads on until the outcome is known, where a success is to be told in the head: no further than the outcome is
    /// looked for, and never longer for one part than an application may take for it.
    pub async fn look_ahead(&mut self) -> Option<&mut Exchange> {
        let inner = self.0.as_mut()?;
        let mut read = BodyBuffer::expecting(inner.relay.exchange.live.settings.inspect_body);
        let share = inner.watch.share.take();
        while inner.watch.inspection.is_some() && inner.relay.exchange.may_set_device_cookie() {
            let frame = poll_fn(|cx| inner.poll_relay(cx)).await;
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => read.put(data),
                Some(Ok(Err(frame))) => inner.behind = Some(Ok(frame)),
                Some(Err(fault)) => inner.behind = Some(Err(fault)),
                None => {}
            }
        }
        inner.ahead = BudgetShare::of(share, read.into_bytes());
        Some(&mut inner.relay.exchange)
    }

    pub fn is_end_stream(&self) -> bool {
        let is_through = |inner: &Inner| {
            inner.ahead.is_empty() && inner.behind.is_none() && inner.last.is_none() && inner.relay.is_end_stream()
        };
        self.0.as_ref().is_none_or(|inner| is_through(inner))
    }

    pub fn size_hint(&self) -> SizeHint {
        let Some(inner) = &self.0 else { return SizeHint::with_exact(0) };
        if let Some(last) = inner.last.as_ref().and_then(Frame::data_ref) {
            return SizeHint::with_exact(last.len() as u64);
        }
        let rest = inner.relay.size_hint();
        let ahead = inner.ahead.len() as u64;
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + ahead);
        if let Some(most) = rest.upper() {
            hint.set_upper(most.saturating_add(ahead));
        }
        hint
    }

    /// Nobody is there to be sent the head: the client left before it came.
    pub fn without_client(&mut self) {
        if let Some(inner) = &mut self.0 {
            inner.relay.exchange.clear_status();
        }
    }
}

impl Inner {
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
        ready!(Pin::new(&mut self.watch.settlement).poll(cx));
        Poll::Ready(self.last.take().map(Ok))
    }

    /// The next part of what was read before the head was sent.
    fn pop_ahead(&mut self) -> Option<Result<Frame<Bytes>, BoxError>> {
        if self.ahead.is_empty() {
            return self.behind.take();
        }
        Some(Ok(Frame::data(mem::take(&mut self.ahead))))
    }

    /// The next part, looked at.
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

    /// Reads on for the outcome alone.
    async fn read_on(mut self: Box<Self>) {
        self.relay.stop_counting();
        while self.watch.inspection.is_some() {
            drop(poll_fn(|cx| self.poll_relay(cx)).await);
        }
    }
}

impl Drop for InspectedBody {
    fn drop(&mut self) {
        let Some(inner) = self.0.take().filter(|inner| inner.watch.inspection.is_some()) else { return };
        if let Some(progress) = inner.relay.exchange.body() {
            progress.abandon();
        }
        let worker = Arc::clone(&inner.relay.exchange.worker);
        worker.spawn_detached(inner.read_on());
    }
}
