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
use crate::admin::query::Query;

/// Banned networks in the formats of firewalls and servers
///
/// Banned addresses, and banned keys that are the address of a client and nothing else. `nft` is a table of its own with
/// rules that drop packets. Each entry times out when its ban ends. `iptables` is a chain of its own for
/// `iptables-restore --noflush` and `ip6tables-restore --noflush`. Loading either again replaces what was loaded before.
#[utoipa::path(
    get,
    path = "/api/v1/bans/export",
    params(("format" = inline(Option<Format>), Query, description = "Left out: `plain`.")),
    responses(
        (status = 200, description = "Text in that format.", body = String, content_type = "text/plain"),
        (status = 400, description = "There is no such format. The detail lists the formats."),
    )
)]
pub(in crate::admin) async fn export(
    State(state): State<Arc<AdminState>>,
    RawQuery(query): RawQuery,
) -> Result<impl IntoResponse, Problem> {
    let query = Query::read(query.as_deref(), &["format"])?;
    let format = query
        .text("format")
        .map_or(Ok(Format::Plain), str::parse)
        .map_err(|error: String| Problem::bad_request(error))?;
    let bans = state.store.bans();
    let now = bans.now();
    let banned: Vec<_> = bans.list().iter().filter_map(|ban| Some((ban.network()?, ban.left(now)))).collect();
    Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], text(format, &banned)))
}
