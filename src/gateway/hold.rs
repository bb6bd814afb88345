//! Holds requests: delayed ones are forwarded afterwards, tarpitted ones are denied.

use std::sync::Arc;
use std::time::Duration;

use http::Response;
use http::request::Parts;

use super::admit::body::RequestBody;
use super::exchange::Exchange;
use super::held_requests::HoldEnd;
use super::held_requests::never_answer;
use super::respond::reply;
use super::response_body::ResponseBody;
use super::snapshot::Snapshot;
use crate::decision::Denial;
use crate::decision::Penalty;
use crate::limit::LimitId;
use crate::listen::Connection;

/// Answers a denied request, after holding it if it is tarpitted. Never returns when its client leaves meanwhile.
pub(super) async fn deny_or_tarpit(
    mut exchange: Box<Exchange>,
    live: &Arc<Snapshot>,
    connection: Arc<Connection>,
    mut parts: Parts,
    body: RequestBody,
    denial: Box<Denial<'_>>,
) -> Response<ResponseBody> {
    let Penalty::Tarpit(span) = denial.penalty else { return reply::deny(exchange, live, body, &denial).await };
    exchange.facts.copy_head(&mut parts);
    drop(parts);
    match exchange.worker.held_requests.hold(&connection, span, live.settings.max_held).await {
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
    mut exchange: Box<Exchange>,
    live: &Arc<Snapshot>,
    connection: &Connection,
    parts: &mut Parts,
    body: RequestBody,
    (limit, span): (LimitId, Duration),
) -> Result<(Box<Exchange>, RequestBody), Response<ResponseBody>> {
    exchange.facts.copy_head(parts);
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
