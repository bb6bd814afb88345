//! Answers the export request.

use std::sync::Arc;

use axum::extract::RawQuery;
use axum::extract::State;
use axum::response::IntoResponse;
use http::header::CONTENT_TYPE;

use super::format::Format;
use super::text::text;
use crate::admin::AdminState;
use crate::admin::problem::Problem;

/// The banned networks that this gateway knows in clear.
pub(in crate::admin) async fn export(
    State(state): State<Arc<AdminState>>,
    RawQuery(query): RawQuery,
) -> Result<impl IntoResponse, Problem> {
    let mut format = Format::Plain;
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        if name != "format" {
            return Err(Problem::bad_request("the only parameter is `format`"));
        }
        format = value.parse().map_err(|error: String| Problem::bad_request(error))?;
    }
    let bans = state.store.bans();
    let now = bans.now();
    let banned: Vec<_> = bans.list().iter().filter_map(|ban| Some((ban.network()?, ban.left(now)))).collect();
    Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], text(format, &banned)))
}
