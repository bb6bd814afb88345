//! Reloads the configuration for an operator.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use tokio::sync::oneshot;
use tokio::time::timeout;
use utoipa::ToSchema;

use super::ReloadRefusal;
use super::ReloadRequest;
use crate::admin::AdminState;
use crate::admin::problem::Problem;

/// The configuration was read anew.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Reloaded)]
pub(super) struct ReloadedResponse {
    /// When it came into force.
    #[schema(format = DateTime)]
    loaded: String,
}

/// Reload the configuration
///
/// Everything is read and checked anew, then comes into force at once. If anything is wrong, all of the running
/// configuration stays. Reloads happen one after another: the answer is that of a reload which began after the request.
#[utoipa::path(
    post,
    path = "/api/v1/reload",
    responses(
        (status = 200, description = "The configuration on disk is in force.", body = ReloadedResponse),
        (status = 409, description = "The configuration came from the command line or from standard input, which cannot be \
            read again."),
        (status = 422, description = "Something is wrong: the configuration of before stays in force. `mistakes` are those \
            that `portcullis check --format json` prints."),
        (status = 500, description = "Reading it failed by a defect: the configuration of before stays in force."),
        (status = 503, description = "Many reloads are waiting already, or the gateway is about to end."),
        (status = 504, description = "Reading takes longer than a minute. It goes on, and the log tells its result."),
    )
)]
pub(super) async fn reload(State(state): State<Arc<AdminState>>) -> Result<Json<ReloadedResponse>, Problem> {
    let (reply, answer) = oneshot::channel();
    let busy = || Problem::new(StatusCode::SERVICE_UNAVAILABLE, BUSY);
    state.reload_requests.try_send(ReloadRequest { reply }).map_err(|_| busy())?;
    match timeout(PATIENCE, answer).await {
        Err(_) => Err(Problem::new(StatusCode::GATEWAY_TIMEOUT, STILL_READING)),
        Ok(Err(_)) => Err(busy()),
        Ok(Ok(Err(refusal))) => Err(refused(refusal)),
        Ok(Ok(Ok(loaded))) => Ok(Json(ReloadedResponse { loaded: loaded.to_string() })),
    }
}

fn refused(refusal: ReloadRefusal) -> Problem {
    match refusal {
        ReloadRefusal::Mistakes(mistakes) => {
            let plural = if mistakes.len() == 1 { "" } else { "s" };
            let detail = format!("{} mistake{plural}: the configuration of before stays in force", mistakes.len());
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail).with_mistakes(mistakes)
        }
        ReloadRefusal::Unusable(error) => {
            let detail = format!("{error}; the configuration of before stays in force");
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail).with_mistakes(Vec::new())
        }
        ReloadRefusal::NoFile(why) => Problem::new(StatusCode::CONFLICT, format!("nothing to reload: {why}")),
        ReloadRefusal::Panic => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, PANIC),
    }
}

/// A list of a million lines takes seconds; a file system that hangs takes for ever.
const PATIENCE: Duration = Duration::from_secs(60);

const BUSY: &str = "many reloads are waiting already, or the gateway is about to end";
const STILL_READING: &str =
    "reading the configuration takes longer than a minute; it goes on, and the log tells its result";
const PANIC: &str = "reading the configuration failed by a defect; the configuration of before stays in force";
