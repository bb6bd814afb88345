//! The steps of a request: admit, decide, enforce, forward.
//!
//! A request whose client has left may have taken something already, or be about to: it goes on without its client where that
//! decides what its client is charged. So leaving avoids no charge, frees no slot that is still in use, and is never charged
//! for what the application did not get.

use std::cell::RefCell;
use std::convert::Infallible;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::Mutex;

use super::decide::request::decide;
use super::enforce::{Enforced, Passed, enforce};
use super::exchange::{Exchange, Persistence};
use super::fault::BadRequest;
use super::forward::send;
use super::forward::upgrade::UpgradeRequest;
use super::respond::reply;
use super::response_body::ResponseBody;
use super::snapshot::{Snapshot, WorkerState};
use super::stages::Facts;
use crate::gateway::admit::{Arrival, admit};
use crate::gateway::body::expect::BodyProgress;
use crate::gateway::body::{BodyBounds, ClientBody, RequestBody};
use crate::gateway::headers;
use crate::listen::{Connection, IncomingRequest, InterimSender, OnUpgrade, Response};
use crate::words::pool::{FreeList, Pooled};

/// Answers the requests that come into `slot`, one after the other. Where one waits for something, the state of all these
/// steps stays where it is: nothing is made for a request, and nothing moves.
async fn answer_requests(slot: Arc<Slot>) -> Infallible {
    loop {
        let Arrived { exchange, connection, body, upgrade } = slot.next_request().await;
        if headers::has_passed(&exchange.facts.head.fields) {
            headers::log(&exchange.facts.head.fields, connection.peer.ip());
            slot.answer(reply::refuse(exchange, BadRequest::Loop));
            continue;
        }
        let live = Arc::clone(&exchange.live);
        let arrival = Arrival { exchange, body, upgrade, tls: connection.tls_info() };
        let response = match judge(&live, &connection, arrival, &slot.persistence).await {
            Err(response) => response,
            Ok(Passed { exchange, body, upgrade, upstream }) => {
                let upgrade = UpgradeRequest::read(upgrade, &exchange.facts.head, !body.is_empty());
                // Its outcome counts, or its slot is in use as long as the application works on it.
                let reservation = &exchange.reservation;
                slot.persistence.set(reservation.outcome_rule().is_some() || reservation.holds_slots());
                send::forward(exchange, connection, body, upstream, upgrade).await
            }
        };
        slot.answer(response);
    }
}

/// The steps that every front has in common: a request passes, or it has its answer. Delays are over by then. `persistence` is
/// set while a store decides.
pub async fn judge(
    live: &Arc<Snapshot>,
    connection: &Connection,
    arrival: Arrival<'_>,
    persistence: &Persistence,
) -> Result<Passed, Response<ResponseBody>> {
    let mut admitted = match admit(live, connection, arrival) {
        Ok(admitted) => admitted,
        Err((exchange, bad_request)) => return Err(reply::refuse(exchange, bad_request)),
    };
    let decided = decide(&mut admitted, live, connection, persistence).await;
    match enforce(admitted, live, connection, decided) {
        Enforced::Passed(passed) => Ok(passed),
        Enforced::Answered(response) => Err(response),
        Enforced::Waiting(waiting) => waiting.await,
    }
}

// The future of a response: one that has answered other requests before, and answers others later.

/// The future of a response. Dropping it before it is ready drops its request, unless that [persists](Persistence).
pub struct ResponseFuture {
    /// `None`: it is ready.
    answering: Option<Answering>,
    worker: Arc<WorkerState>,
}

/// [`answer_requests`], with the slot where its requests come and its answers go.
struct Answering {
    slot: Arc<Slot>,
    requests: Pin<Box<dyn Future<Output = Infallible> + Send>>,
}

/// A request of a client that has begun.
struct Arrived {
    exchange: Pooled<Exchange>,
    connection: Arc<Connection>,
    body: RequestBody,
    upgrade: Option<OnUpgrade>,
}

impl Arrived {
    /// The request uses the snapshot of now to its end.
    #[inline]
    fn begin(
        worker: &Arc<WorkerState>,
        connection: Arc<Connection>,
        request: IncomingRequest,
        interim: InterimSender,
    ) -> Self {
        let live = worker.live.load_full();
        let IncomingRequest { head, body, upgrade } = request;
        let body = RequestBody::new(ClientBody::new(body, head.version), BodyBounds::of(&live.settings));
        let identity = live.clients.identify(connection.peer.ip(), &head.fields);
        let (peer, may_upgrade) = (&connection, upgrade.is_some());
        let facts = |live: &Snapshot| Facts::of(head, identity, peer, live, may_upgrade, worker.clock.now());
        let exchange = Exchange::begin(Arc::clone(worker), live, facts, body.progress(), interim);
        Self { exchange, connection, body, upgrade }
    }
}

/// Holds a request until its steps begin, and its answer until it is taken.
#[derive(Default)]
struct Slot {
    /// Who holds the future uses it alone: nobody waits for the lock.
    state: Mutex<SlotState>,
    persistence: Persistence,
}

#[derive(Default)]
struct SlotState {
    request: Option<Arrived>,
    response: Option<Response<ResponseBody>>,
    /// How much of the body of the request has come, if it has one.
    received: Option<BodyProgress>,
}

impl ResponseFuture {
    #[inline]
    pub(super) fn new(
        worker: Arc<WorkerState>,
        connection: Arc<Connection>,
        request: IncomingRequest,
        interim: InterimSender,
    ) -> Self {
        let arrived = Arrived::begin(&worker, connection, request, interim);
        let answering = FREE.with_borrow_mut(FreeList::take).unwrap_or_else(Answering::new);
        answering.slot.receive(arrived);
        Self { answering: Some(answering), worker }
    }
}

impl Future for ResponseFuture {
    type Output = Response<ResponseBody>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(answering) = &mut self.answering else { return Poll::Pending };
        let Some(response) = answering.poll(cx) else { return Poll::Pending };
        if let Some(answering) = self.answering.take() {
            FREE.with_borrow_mut(|free| free.put(answering));
        }
        Poll::Ready(response)
    }
}

impl Drop for ResponseFuture {
    fn drop(&mut self) {
        let Some(answering) = self.answering.take().filter(|it| it.slot.persistence.is_set()) else { return };
        if let Some(received) = &answering.slot.state.lock().received {
            received.abandon();
        }
        self.worker.spawn_detached(answering.run_without_client());
    }
}

impl Answering {
    fn new() -> Self {
        let slot = Arc::<Slot>::default();
        Self { requests: Box::pin(answer_requests(Arc::clone(&slot))), slot }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Option<Response<ResponseBody>> {
        let Poll::Pending = self.requests.as_mut().poll(cx);
        self.slot.state.lock().response.take()
    }

    /// Goes on as long as the request persists. The answer is read as far as its outcome needs.
    async fn run_without_client(mut self) {
        let response = poll_fn(|cx| match self.poll(cx) {
            Some(response) => Poll::Ready(Some(response)),
            None if self.slot.persistence.is_set() => Poll::Pending,
            None => Poll::Ready(None),
        });
        drop(response.await.map(|response| response.body.without_client()));
    }
}

impl Slot {
    /// Waits without being woken: what puts a request into the slot polls afterwards.
    async fn next_request(&self) -> Arrived {
        poll_fn(|_| self.state.lock().request.take().map_or(Poll::Pending, Poll::Ready)).await
    }

    fn receive(&self, arrived: Arrived) {
        let mut state = self.state.lock();
        state.received = arrived.body.progress();
        state.request = Some(arrived);
    }

    fn answer(&self, response: Response<ResponseBody>) {
        self.persistence.set(false);
        let mut state = self.state.lock();
        (state.response, state.received) = (Some(response), None);
    }
}

impl fmt::Debug for ResponseFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

thread_local! {
    /// Those that wait for a request of this thread.
    static FREE: RefCell<FreeList<Answering>> = const { RefCell::new(FreeList::empty()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each request that waits for its application keeps so many bytes: what waits rarely is on the heap.
    #[test]
    fn a_request_that_waits_keeps_little() {
        let size = size_of_val(&answer_requests(Arc::default()));
        assert!(size <= 2560, "{size} bytes");
    }
}
