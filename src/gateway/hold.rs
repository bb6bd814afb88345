//! Holds requests: delayed ones are forwarded afterwards, tarpitted ones are denied.

use std::sync::Arc;
use std::time::Duration;

use super::admit::body::RequestBody;
use super::exchange::Exchange;
use super::held_requests::HoldEnd;
use super::held_requests::never_answer;
use super::respond::reply;
use super::response_body::ResponseBody;
use super::snapshot::Snapshot;
use crate::decision::Denial;
use crate::limit::LimitId;
use crate::listen::Connection;
use crate::listen::Response;
use crate::pool::Pooled;

/// Answers a denied request after holding it. Never returns when its client leaves meanwhile.
pub(super) async fn tarpit(
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
        HoldEnd::TooMany => exchange.decision_mut().set_denied_unheld(&denial),
        HoldEnd::ClientLeft => {
            drop((exchange, body));
            return never_answer().await;
        }
    }
    reply::deny(exchange, live, body, &denial).await
}

/// Holds a request that is forwarded afterwards, or denies it when it cannot be held. Never returns when its client
/// leaves.
pub(super) async fn delay(
    mut exchange: Pooled<Exchange>,
    live: &Arc<Snapshot>,
    connection: &Connection,
    body: RequestBody,
    (limit, span): (LimitId, Duration),
) -> Result<(Pooled<Exchange>, RequestBody), Response<ResponseBody>> {
    exchange.facts.head.fields.shrink();
    match exchange.worker.held_requests.hold(connection, span, live.settings.max_held).await {
        HoldEnd::Completed => Ok((exchange, body)),
        HoldEnd::TooMany | HoldEnd::ShuttingDown => {
            let denial = Denial::instead_of_delay(&live.policy, exchange.decision().route, limit, span);
            exchange.decision_mut().set_denied_unheld(&denial);
            Err(reply::deny(exchange, live, body, &denial).await)
        }
        HoldEnd::ClientLeft => {
            drop((exchange, body));
            never_answer().await
        }
    }
}
