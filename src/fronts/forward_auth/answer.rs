//! Writes the answers that proxies get.

use http::StatusCode;
use http::Version;
use http_body::Body;

use super::bad_question::BadQuestion;
use super::endpoint::Endpoint;
use crate::gateway::Passed;
use crate::gateway::ResponseBody;
use crate::gateway::admit::body::ClientBody;
use crate::gateway::exchange::Exchange;
use crate::gateway::respond::reply;
use crate::gateway::respond::reply::AfterReply;
use crate::head::Name;
use crate::listen::Response;
use crate::pool::Pooled;

/// The request may be forwarded.
pub(super) async fn pass(passed: Passed) -> Response<ResponseBody> {
    let Passed { exchange, body, .. } = passed;
    reply::pass(exchange, body).await
}

/// The request may not be forwarded: a denial, or an error in place of one.
pub(super) fn deny(endpoint: Endpoint, mut denied: Response<ResponseBody>) -> Response<ResponseBody> {
    if endpoint == Endpoint::Nginx {
        let meant = denied.head.status;
        denied.head.fields.insert(Name::of(MEANT_STATUS), meant.as_str().as_bytes());
        denied.head.status = StatusCode::FORBIDDEN;
    }
    denied
}

/// The status of a denial for nginx.
const MEANT_STATUS: &str = "x-portcullis-status";

/// Nothing is decided. The question stands in the log with what could be read of it.
pub(super) fn refuse(mut exchange: Pooled<Exchange>, body: &ClientBody, bad: BadQuestion) -> Response<ResponseBody> {
    let version = exchange.facts.head.version;
    let status = match bad {
        BadQuestion::Framing(bad_request) => return reply::refuse(exchange, bad_request),
        BadQuestion::Path => StatusCode::NOT_FOUND,
        BadQuestion::Description(_) => StatusCode::BAD_REQUEST,
    };
    let words = bad.to_string();
    let is_over = body.is_end_stream() || version >= Version::HTTP_2;
    let after = if is_over { AfterReply::KeepAlive } else { AfterReply::Close };
    exchange.set_error(words.clone());
    reply::fail(exchange, status, &words, after)
}
