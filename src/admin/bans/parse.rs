//! Reads ban ids and networks.

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use http::StatusCode;
use ipnet::IpNet;

use crate::admin::problem::Problem;
use crate::list::network;
use crate::store::bans::BanId;

/// A text that is not an id gets the same answer as the id of no ban.
pub(super) fn ban_id(id: Result<Path<String>, PathRejection>) -> Result<BanId, Problem> {
    id.ok().and_then(|Path(id)| id.parse().ok()).ok_or_else(no_such_ban)
}

pub(super) fn no_such_ban() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is no ban of that id")
}

pub(super) fn network_of(text: &str) -> Result<IpNet, Problem> {
    network(text.trim()).map_err(|error| Problem::bad_request(error.to_string()))
}
