//! The steps of a request: admit, decide, enforce, forward.

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
use super::exchange::Exchange;
use super::fault::BadRequest;
use super::forward::send;
use super::forward::upgrade::UpgradeRequest;
use super::respond::reply;
use super::response_body::ResponseBody;
use super::snapshot::{Snapshot, WorkerState};
use super::stages::Facts;
use crate::gateway::admit::{Arrival, admit};
use crate::gateway::body::{BodyBounds, ClientBody, RequestBody};
use crate::gateway::headers;
use crate::listen::{Connection, IncomingRequest, InterimSender, Response};
use crate::words::pool::FreeList;

/// Answers the requests that come into `slot`, one after the other. Where one waits for something, the state of all these
/// steps stays where it is: nothing is made for a request, and nothing moves.
async fn answer_requests(slot: Arc<Slot>) -> Infallible {
    loop {
        let Arrived { worker, connection, request, interim } = slot.next_request().await;
        // The request uses this snapshot to its end.
        let live = worker.live.load_full();
        let IncomingRequest { head, body, upgrade } = request;
        let body = RequestBody::new(ClientBody::new(body, head.version), BodyBounds::of(&live.settings));
        let identity = live.clients.identify(connection.peer.ip(), &head.fields);
        let facts = Facts::of(head, identity, &connection, &live, upgrade.is_some(), worker.clock.now());
        let exchange = Exchange::begin(worker, Arc::clone(&live), facts, body.progress(), interim);
        if headers::has_passed(&exchange.facts.head.fields) {
            headers::log(&exchange.facts.head.fields, connection.peer.ip());
            slot.answer(reply::refuse(exchange, BadRequest::Loop));
            continue;
        }
        let arrival = Arrival { exchange, body, upgrade, tls: connection.tls_info() };
        let response = match judge(&live, &connection, arrival).await {
            Err(response) => response,
            Ok(Passed { exchange, body, upgrade, upstream }) => {
                let upgrade = UpgradeRequest::read(upgrade, &exchange.facts.head, !body.is_empty());
                if exchange.reservation.outcome_rule().is_some() {
                    send::to_its_end(exchange, connection, body, upstream, upgrade).await
                } else {
                    send::forward(exchange, connection, body, upstream, upgrade).await
                }
            }
        };
        slot.answer(response);
    }
}

/// The steps that every front has in common: a request passes, or it has its answer. Delays are over by then.
pub async fn judge(
    live: &Arc<Snapshot>,
    connection: &Connection,
    arrival: Arrival<'_>,
) -> Result<Passed, Response<ResponseBody>> {
    let mut admitted = match admit(live, connection, arrival) {
        Ok(admitted) => admitted,
        Err((exchange, bad_request)) => return Err(reply::refuse(exchange, bad_request)),
    };
    let decided = decide(&mut admitted, live, connection).await;
    match enforce(admitted, live, connection, decided) {
        Enforced::Passed(passed) => Ok(passed),
        Enforced::Answered(response) => Err(response),
        Enforced::Waiting(waiting) => waiting.await,
    }
}

// The future of a response: one that has answered other requests before, and answers others later.

/// The future of a response. Dropping it before it is ready drops its request.
pub struct ResponseFuture(
    /// `None`: it is ready.
    Option<Answering>,
);

/// [`answer_requests`], with the slot where its requests come and its answers go.
struct Answering {
    slot: Arc<Slot>,
    requests: Pin<Box<dyn Future<Output = Infallible> + Send>>,
}

/// A request of a client, and what answers it.
pub(super) struct Arrived {
    pub(super) worker: Arc<WorkerState>,
    pub(super) connection: Arc<Connection>,
    pub(super) request: IncomingRequest,
    pub(super) interim: InterimSender,
}

/// Holds a request until it is begun, and its answer until it is taken. Who holds the future uses it alone: nobody waits for
/// the lock.
#[derive(Default)]
struct Slot(Mutex<SlotState>);

#[derive(Default)]
struct SlotState {
    request: Option<Arrived>,
    response: Option<Response<ResponseBody>>,
}

impl ResponseFuture {
    #[inline]
    pub(super) fn new(arrived: Arrived) -> Self {
        let answering = FREE.with_borrow_mut(FreeList::take).unwrap_or_else(Answering::new);
        answering.slot.0.lock().request = Some(arrived);
        Self(Some(answering))
    }
}

impl Future for ResponseFuture {
    type Output = Response<ResponseBody>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(answering) = &mut self.0 else { return Poll::Pending };
        let Poll::Pending = answering.requests.as_mut().poll(cx);
        let Some(response) = answering.slot.0.lock().response.take() else { return Poll::Pending };
        if let Some(answering) = self.0.take() {
            FREE.with_borrow_mut(|free| free.put(answering));
        }
        Poll::Ready(response)
    }
}

impl Answering {
    fn new() -> Self {
        let slot = Arc::<Slot>::default();
        Self { requests: Box::pin(answer_requests(Arc::clone(&slot))), slot }
    }
}

impl Slot {
    /// Waits without being woken: what puts a request into the slot polls afterwards.
    async fn next_request(&self) -> Arrived {
        poll_fn(|_| self.0.lock().request.take().map_or(Poll::Pending, Poll::Ready)).await
    }

    fn answer(&self, response: Response<ResponseBody>) {
        self.0.lock().response = Some(response);
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
