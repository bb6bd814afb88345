//! Enforces a decision: answers a request that is denied, and holds one that is delayed or tarpitted.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, ready};
use std::time::Duration;
use std::{fmt, future};

use tokio::time::{Instant, sleep};

use super::exchange::Exchange;
use super::reservation::Reservation;
use super::respond::reply;
use super::response_body::ResponseBody;
use super::snapshot::Snapshot;
use super::stages::Decided;
use crate::gateway::admit::Admitted;
use crate::gateway::body::RequestBody;
use crate::gateway::decide::request::{DecideError, FinalAction, FinalDecision};
use crate::listen::{Connection, OnUpgrade, Response};
use crate::record::kept_requests::KeptCause;
use crate::rules::decision::{Denial, Penalty};
use crate::rules::limit::LimitId;
use crate::rules::route::UpstreamId;
use crate::words::pool::Pooled;

/// A request that may go on to the application. Its exchange holds its reservation.
#[derive(Debug)]
pub struct Passed {
    pub exchange: Pooled<Exchange>,
    pub body: RequestBody,
    /// The connection of a client that asks for another protocol.
    pub upgrade: Option<OnUpgrade>,
    pub upstream: UpstreamId,
}

/// What becomes of a decided request.
#[must_use]
pub enum Enforced<'c> {
    Passed(Passed),
    Answered(Response<ResponseBody>),
    /// It is held, or the rest of its body is read. Never ready when the client leaves while its request is held.
    Waiting(Pin<Box<dyn Future<Output = Result<Passed, Response<ResponseBody>>> + Send + 'c>>),
}

impl fmt::Debug for Enforced<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed(passed) => passed.fmt(f),
            Self::Answered(response) => response.fmt(f),
            Self::Waiting(_) => f.write_str("Waiting"),
        }
    }
}

impl<'c> Enforced<'c> {
    /// In memory of its own, so that the requests that do not wait take no room for it.
    fn waiting(future: impl Future<Output = Result<Passed, Response<ResponseBody>>> + Send + 'c) -> Self {
        Self::Waiting(Box::pin(future))
    }
}

/// Lets a request pass, after its delay, or answers it.
pub fn enforce<'c>(
    admitted: Admitted,
    live: &'c Arc<Snapshot>,
    connection: &'c Connection,
    decided: Result<FinalDecision, DecideError>,
) -> Enforced<'c> {
    let Admitted { mut exchange, body, upgrade, .. } = admitted;
    let action = match decided {
        Ok(FinalDecision { decided, reservation, action, sessions }) => {
            exchange.decide(decided, reservation, sessions);
            action
        }
        Err(DecideError::BadRequest(bad_request)) => return Enforced::Answered(reply::refuse(exchange, bad_request)),
        Err(DecideError::StoreDown(route, error)) => {
            exchange.decide(Pooled::new(Decided::store_down(route)), Reservation::default(), None);
            return Enforced::waiting(async move {
                let is_body_read = body.discard().await;
                Err(reply::cannot_decide(exchange, is_body_read, error))
            });
        }
    };
    match action {
        FinalAction::Deny(denial) => {
            if let Penalty::Tarpit(span) = denial.penalty {
                let held = tarpit(exchange, live, connection, body, denial, span);
                return Enforced::waiting(async move { Err(held.await) });
            }
            if body.is_empty() {
                return Enforced::Answered(reply::deny(exchange, live, true, &denial));
            }
            Enforced::waiting(async move {
                let is_body_read = body.discard().await;
                Err(reply::deny(exchange, live, is_body_read, &denial))
            })
        }
        FinalAction::Forward { upstream, delay: None } => {
            exchange.pass(upstream);
            Enforced::Passed(Passed { exchange, body, upgrade, upstream })
        }
        FinalAction::Forward { upstream, delay: Some(limit_and_span) } => Enforced::waiting(async move {
            let (mut exchange, body) = delay(exchange, live, connection, body, limit_and_span).await?;
            exchange.pass(upstream);
            Ok(Passed { exchange, body, upgrade, upstream })
        }),
    }
}

// Holds requests: delayed ones are forwarded afterwards, tarpitted ones are denied.

/// Answers a denied request after holding it. Never returns when its client leaves meanwhile.
async fn tarpit(
    mut exchange: Pooled<Exchange>,
    live: &Arc<Snapshot>,
    connection: &Connection,
    body: RequestBody,
    denial: Pooled<Denial>,
    span: Duration,
) -> Response<ResponseBody> {
    exchange.facts.head.fields.shrink();
    match exchange.worker.held_requests.hold(connection, span, live.settings.max_held).await {
        HoldEnd::Completed | HoldEnd::ShuttingDown => {}
        HoldEnd::TooMany => exchange.deny_instead_of_holding(&denial, KeptCause::TooManyHeld),
        HoldEnd::ClientLeft => {
            drop((exchange, body));
            return never_answer().await;
        }
    }
    let is_body_read = body.discard().await;
    reply::deny(exchange, live, is_body_read, &denial)
}

/// Holds a request that is forwarded afterwards, or denies it when it cannot be held. Never returns when its client
/// leaves.
async fn delay(
    mut exchange: Pooled<Exchange>,
    live: &Arc<Snapshot>,
    connection: &Connection,
    body: RequestBody,
    (limit, span): (LimitId, Duration),
) -> Result<(Pooled<Exchange>, RequestBody), Response<ResponseBody>> {
    exchange.facts.head.fields.shrink();
    let cause = match exchange.worker.held_requests.hold(connection, span, live.settings.max_held).await {
        HoldEnd::Completed => return Ok((exchange, body)),
        HoldEnd::TooMany => KeptCause::TooManyHeld,
        HoldEnd::ShuttingDown => KeptCause::NotHeldAtTheEnd,
        HoldEnd::ClientLeft => {
            drop((exchange, body));
            return never_answer().await;
        }
    };
    let denial = Denial::instead_of_delay(&live.policy, exchange.decided().route, limit, span);
    exchange.deny_instead_of_holding(&denial, cause);
    let is_body_read = body.discard().await;
    Err(reply::deny(exchange, live, is_body_read, &denial))
}

// Requests that a limit holds: each costs a timer and no thread, and ends when its client leaves.

/// How often a connection is checked whose client may have left behind unread bytes. A check is no system call.
const BETWEEN_CHECKS: Duration = Duration::from_millis(250);

/// Counts the requests that a process holds. Clones share the count.
#[derive(Clone, Debug, Default)]
pub struct HeldRequests(Arc<AtomicUsize>);

/// How a hold ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HoldEnd {
    /// The span has passed.
    Completed,
    /// The request was not held, because `most` are held already.
    TooMany,
    /// The process is shutting down.
    ShuttingDown,
    /// The client has closed its side of the connection. A client that leaves does just this, so it gets no answer.
    ClientLeft,
}

impl HeldRequests {
    /// The number of held requests.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Holds a request of this connection for `span`, unless `most` are held already.
    pub async fn hold(&self, connection: &Connection, span: Duration, most: usize) -> HoldEnd {
        let Some(_held) = self.enter(most) else { return HoldEnd::TooMany };
        let mut ending = pin!(connection.ending());
        let end = Instant::now() + span;
        let mut check = pin!(sleep(span.min(BETWEEN_CHECKS)));
        let mut is_last = false;
        poll_fn(|cx| {
            if connection.has_left() {
                connection.abandon();
                return Poll::Ready(HoldEnd::ClientLeft);
            }
            if ending.as_mut().poll(cx).is_ready() {
                return Poll::Ready(HoldEnd::ShuttingDown);
            }
            ready!(check.as_mut().poll(cx));
            if is_last {
                return Poll::Ready(HoldEnd::Completed);
            }
            // While a part of the body is unread, a disconnect wakes no task. The connection checks for it, then this
            // is polled again.
            connection.check_whether_client_left();
            cx.waker().wake_by_ref();
            let now = Instant::now();
            is_last = now >= end;
            if !is_last {
                check.as_mut().reset(end.min(now + BETWEEN_CHECKS));
            }
            Poll::Pending
        })
        .await
    }

    fn enter(&self, most: usize) -> Option<HeldRequest> {
        let entered =
            self.0.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |count| (count < most).then_some(count + 1));
        entered.is_ok().then(|| HeldRequest(Arc::clone(&self.0)))
    }
}

/// Never returns: the connection of a client that has left drops this. An answer would reward a client that closes only
/// its side.
pub async fn never_answer<T>() -> T {
    future::pending().await
}

/// One held request. Dropping it makes room for another.
#[derive(Debug)]
struct HeldRequest(Arc<AtomicUsize>);

impl Drop for HeldRequest {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_held_than_may_be_and_an_ended_hold_makes_room() {
        let held_requests = HeldRequests::default();
        let first = held_requests.enter(2).expect("room");
        let _second = held_requests.clone().enter(2).expect("room");
        assert!(held_requests.enter(2).is_none());
        assert_eq!(held_requests.count(), 2);
        drop(first);
        assert!(held_requests.enter(2).is_some());
        assert!(held_requests.enter(0).is_none());
    }
}
