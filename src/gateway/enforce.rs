//! Enforces a decision: answers a request that is denied, and holds one that is delayed or tarpitted.

use std::sync::Arc;

use super::admit::admission::Admitted;
use super::admit::body::RequestBody;
use super::decide::final_decision::DecideError;
use super::decide::final_decision::FinalAction;
use super::decide::final_decision::FinalDecision;
use super::exchange::Exchange;
use super::hold;
use super::respond::reply;
use super::response_body::ResponseBody;
use super::snapshot::Snapshot;
use crate::decision::Penalty;
use crate::listen::Connection;
use crate::listen::OnUpgrade;
use crate::listen::Response;
use crate::pool::Pooled;
use crate::route::UpstreamId;

/// A request that may go on to the application. Its exchange holds what is reserved for it.
#[derive(Debug)]
pub struct Passed {
    pub exchange: Pooled<Exchange>,
    pub body: RequestBody,
    /// The connection of a client that asks for another protocol.
    pub upgrade: Option<OnUpgrade>,
    pub upstream: UpstreamId,
}

/// Lets a request pass, after its delay, or answers it. Never returns when the client leaves while its request is held.
pub async fn enforce(
    admitted: Admitted,
    live: &Arc<Snapshot>,
    connection: &Connection,
    decided: Result<FinalDecision, DecideError>,
) -> Result<Passed, Response<ResponseBody>> {
    let Admitted { mut exchange, body, upgrade, .. } = admitted;
    let action = match decided {
        Ok(FinalDecision { record, reservation, action, sessions }) => {
            exchange.set_decision(record, reservation);
            exchange.set_sessions(sessions);
            action
        }
        Err(DecideError::BadRequest(bad_request)) => return Err(reply::refuse(exchange, bad_request)),
        Err(DecideError::StoreDown(route, error)) => {
            return Err(reply::cannot_decide(exchange, body, route, error).await);
        }
    };
    let (upstream, delay) = match action {
        FinalAction::Deny(denial) => {
            if let Penalty::Tarpit(span) = denial.penalty {
                return Err(Box::pin(hold::tarpit(exchange, live, connection, body, denial, span)).await);
            }
            return Err(reply::deny(exchange, live, body, &denial).await);
        }
        FinalAction::Forward { upstream, delay } => (upstream, delay),
    };
    let (exchange, body) = match delay {
        None => (exchange, body),
        Some(delay) => Box::pin(hold::delay(exchange, live, connection, body, delay)).await?,
    };
    Ok(Passed { exchange, body, upgrade, upstream })
}
