//! Writes the gateway's own answers: denials in their configured form, and errors.

use bytes::Bytes;
use http::HeaderMap;
use http::HeaderName;
use http::HeaderValue;
use http::Method;
use http::Response;
use http::StatusCode;
use http::Version;
use http::header::ALLOW;
use http::header::CACHE_CONTROL;
use http::header::CONNECTION;
use http::header::CONTENT_LENGTH;
use http::header::CONTENT_SECURITY_POLICY;
use http::header::CONTENT_TYPE;
use http::header::LOCATION;
use http::header::RETRY_AFTER;
use http::header::TRANSFER_ENCODING;
use smallvec::SmallVec;

use super::challenge_page;
use super::grpc;
use super::page;
use super::preference::ReplyFormat;
use super::problem;
use super::refusal::Refusal;
use crate::decision::Denial;
use crate::decision::DenialCause;
use crate::decision::Penalty;
use crate::gateway::admit::body::RequestBody;
use crate::gateway::admit::framing::BadRequest;
use crate::gateway::admit::request_id::X_REQUEST_ID;
use crate::gateway::decide::record::DecisionRecord;
use crate::gateway::exchange::Exchange;
use crate::gateway::reservation::Reservation;
use crate::gateway::response_body::ResponseBody;
use crate::gateway::snapshot::Snapshot;
use crate::key::KeyHash;
use crate::limit::DenyResponse;
use crate::limit::Limit;
use crate::limit::action::DenyBody;
use crate::route::RouteId;
use crate::store::StoreError;

const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const CLOSE: HeaderValue = HeaderValue::from_static("close");
/// In seconds: a short outage of Redis has ended by then.
const UNDECIDED_WAIT: u16 = 1;
/// All methods of RFC 9110 and RFC 5789 except CONNECT and TRACE.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");

/// Answers a denied request, which the application does not get. The rest of a short body is read, so that the
/// connection can be kept. After a longer body the connection closes.
pub async fn deny(
    exchange: Box<Exchange>,
    live: &Snapshot,
    body: RequestBody,
    denial: &Denial<'_>,
) -> Response<ResponseBody> {
    let is_body_read = body.is_empty() || Box::pin(body.discard()).await;
    let mut names: SmallVec<[&str; 2]> = SmallVec::new();
    let refusal = match &denial.cause {
        DenialCause::Listed { .. } | DenialCause::NotOnList | DenialCause::Banned => Refusal::Forbidden,
        DenialCause::TooManyValues => Refusal::TooManyValues,
        DenialCause::Limited { limits, retry_after } => {
            let limits = limits.iter().filter_map(|id| live.policy.limits.get(usize::from(id.0)));
            names.extend(limits.map(|limit| &*limit.name));
            Refusal::Limited { limits: &names, wait: *retry_after }
        }
    };
    let question = challenging(live, denial);
    let mut answer = match &refusal {
        Refusal::Limited { .. } => {
            let mut answer = match question {
                Some((limit, key)) => Reply::challenging(&exchange, &refusal, denial.response, limit, key),
                None => Reply::configured(&exchange, &refusal, denial.response),
            };
            if let Some(seconds) = exchange.decision().retry_after {
                answer.headers.insert(RETRY_AFTER, number(seconds));
            }
            answer
        }
        Refusal::Forbidden => Reply::built_in(&exchange, &refusal, StatusCode::FORBIDDEN),
        Refusal::TooManyValues | Refusal::Unavailable | Refusal::Failed { .. } => {
            Reply::built_in(&exchange, &refusal, StatusCode::BAD_REQUEST)
        }
    };
    live.ratelimit_headers.write(&mut answer.headers, &exchange.decision().report.limits);
    answer.close_unless(is_body_read, exchange.facts.version);
    if let Refusal::Limited { .. } = refusal {
        let kept = question.and_then(|_| answer.headers.get(CONTENT_SECURITY_POLICY).cloned());
        add_configured(&mut answer.headers, &denial.response.headers);
        if let Some(challenge_policy) = kept {
            // A challenge page runs the gateway's script, and every page is different.
            answer.headers.insert(CONTENT_SECURITY_POLICY, challenge_policy);
            answer.headers.insert(CACHE_CONTROL, NO_STORE);
        }
    }
    answer.finish(exchange)
}

/// The limit that challenges, and the key.
fn challenging<'l>(live: &'l Snapshot, denial: &Denial<'_>) -> Option<(&'l Limit, KeyHash)> {
    let Penalty::Challenge(key) = denial.penalty else { return None };
    Some((live.policy.limits.get(usize::from(denial.limit?.0))?, key))
}

/// Answers a request that was refused before any rule was applied. Its connection closes, because the bytes that follow
/// are ambiguous.
pub fn refuse(mut exchange: Box<Exchange>, bad_request: BadRequest) -> Response<ResponseBody> {
    exchange.decision_mut().set_error();
    exchange.set_error(bad_request.to_string());
    let mut answer =
        Reply::built_in(&exchange, &Refusal::Failed { words: &bad_request.to_string() }, bad_request.status());
    if bad_request == BadRequest::Method {
        answer.headers.insert(ALLOW, METHODS);
    }
    if exchange.facts.version < Version::HTTP_2 {
        answer.headers.insert(CONNECTION, CLOSE);
    }
    answer.finish(exchange)
}

/// Answers for an application that failed. The client gets `words`, the log has the error of the exchange.
pub fn fail(mut exchange: Box<Exchange>, status: StatusCode, words: &str, after: AfterReply) -> Response<ResponseBody> {
    exchange.decision_mut().set_error();
    let mut answer = Reply::built_in(&exchange, &Refusal::Failed { words }, status);
    if after == AfterReply::Close {
        answer.headers.insert(CONNECTION, CLOSE);
    }
    answer.finish(exchange)
}

/// Answers a request during an outage of the store, if one of its limits denies meanwhile. The application does not get
/// the request.
pub async fn cannot_decide(
    mut exchange: Box<Exchange>,
    body: RequestBody,
    route: Option<RouteId>,
    error: StoreError,
) -> Response<ResponseBody> {
    let record = DecisionRecord { retry_after: Some(UNDECIDED_WAIT.into()), ..DecisionRecord::undecided(route) };
    exchange.set_decision(record, Reservation::default());
    exchange.set_error(error.to_string());
    let is_body_read = body.is_empty() || Box::pin(body.discard()).await;
    let mut answer = Reply::built_in(&exchange, &Refusal::Unavailable, StatusCode::SERVICE_UNAVAILABLE);
    answer.headers.insert(RETRY_AFTER, HeaderValue::from(UNDECIDED_WAIT));
    answer.close_unless(is_body_read, exchange.facts.version);
    answer.finish(exchange)
}

/// What happens to the connection after an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AfterReply {
    KeepAlive,
    Close,
}

/// An answer that is being written.
#[derive(Debug)]
struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    content: Bytes,
}

impl Reply {
    fn new(exchange: &Exchange, status: StatusCode, content_type: HeaderValue, content: Bytes) -> Self {
        // As many headers as most answers have: one more would double the memory.
        let mut headers = HeaderMap::with_capacity(6);
        headers.insert(CONTENT_TYPE, content_type);
        headers.insert(CACHE_CONTROL, NO_STORE);
        headers.insert(X_REQUEST_ID, exchange.facts.request_id.to_header());
        Self { status, headers, content }
    }

    /// A page for browsers, a status for gRPC, and a problem document for all other clients.
    fn built_in(exchange: &Exchange, refusal: &Refusal<'_>, status: StatusCode) -> Self {
        Self::written(exchange, exchange.facts.preference.format(), refusal, status)
    }

    fn written(exchange: &Exchange, format: ReplyFormat, refusal: &Refusal<'_>, status: StatusCode) -> Self {
        match format {
            ReplyFormat::Grpc(content_type) => {
                let mut answer = Self::new(exchange, StatusCode::OK, content_type, Bytes::new());
                grpc::write(&mut answer.headers, refusal, status);
                answer
            }
            ReplyFormat::Html => {
                let html = page::page(refusal, status, &exchange.facts.request_id);
                Self::new(exchange, status, HTML, Bytes::from(html))
            }
            ReplyFormat::Problem => {
                let json = problem::document(refusal, status, &exchange.facts.request_id);
                Self::new(exchange, status, PROBLEM_JSON, Bytes::from(json))
            }
        }
    }

    /// A challenge page for browsers, a problem document for all other clients. It has the configured status, unless
    /// that status cannot have a page.
    fn challenging(
        exchange: &Exchange,
        refusal: &Refusal<'_>,
        response: &DenyResponse,
        limit: &Limit,
        key: KeyHash,
    ) -> Self {
        let configured = response.status.filter(|status| !status.is_redirection() && *status != StatusCode::NO_CONTENT);
        let status = configured.unwrap_or(StatusCode::TOO_MANY_REQUESTS);
        let format = exchange.facts.preference.format();
        if format != ReplyFormat::Html {
            return Self::written(exchange, format, refusal, status);
        }
        let page = challenge_page::page(exchange, limit, key, refusal);
        let mut answer = Self::new(exchange, status, HTML, Bytes::from(page.html));
        answer.headers.insert(CONTENT_SECURITY_POLICY, page.content_security_policy);
        answer
    }

    /// A denial in its configured form.
    fn configured(exchange: &Exchange, refusal: &Refusal<'_>, response: &DenyResponse) -> Self {
        let format = exchange.facts.preference.format();
        if matches!(format, ReplyFormat::Grpc(_)) {
            // A gRPC client reads no page, and follows no redirect.
            return Self::written(exchange, format, refusal, StatusCode::TOO_MANY_REQUESTS);
        }
        let usual = if response.redirect.is_some() { StatusCode::SEE_OTHER } else { StatusCode::TOO_MANY_REQUESTS };
        let status = response.status.unwrap_or(usual);
        let mut answer = match &response.body {
            Some(DenyBody::Verbatim { content_type, content }) => {
                Self::new(exchange, status, content_type.clone(), content.clone())
            }
            Some(DenyBody::Page(page)) if format == ReplyFormat::Html => {
                Self::new(exchange, status, HTML, page.clone())
            }
            _ => Self::written(exchange, format, refusal, status),
        };
        if let Some(location) = &response.redirect {
            answer.headers.insert(LOCATION, location.clone());
        }
        answer
    }

    /// Closes the connection if the body was not read.
    fn close_unless(&mut self, is_body_read: bool, version: Version) {
        if !is_body_read && version < Version::HTTP_2 {
            self.headers.insert(CONNECTION, CLOSE);
        }
    }

    /// Ends the exchange.
    fn finish(mut self, mut exchange: Box<Exchange>) -> Response<ResponseBody> {
        if exchange.facts.asks_for_tunnel && self.status.is_success() {
            // The client would take a successful status for the start of its tunnel.
            self.status = StatusCode::FORBIDDEN;
        }
        let is_bodiless = matches!(self.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let body = if is_bodiless {
            self.headers.remove(CONTENT_TYPE);
            ResponseBody::Empty
        } else if exchange.facts.method == Method::HEAD {
            self.headers.insert(CONTENT_LENGTH, HeaderValue::from(self.content.len()));
            ResponseBody::Empty
        } else {
            exchange.add_bytes_out(self.content.len() as u64);
            ResponseBody::Full(self.content)
        };
        exchange.set_status(self.status);
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}

/// Like `HeaderValue::from`, in half the memory.
fn number(number: u64) -> HeaderValue {
    HeaderValue::from_str(itoa::Buffer::new().format(number)).expect("digits are visible")
}

/// Configured headers replace the gateway's own. Several headers of one name become several lines.
fn add_configured(headers: &mut HeaderMap, configured: &[(HeaderName, HeaderValue)]) {
    for (position, (name, value)) in configured.iter().enumerate() {
        if [CONTENT_LENGTH, TRANSFER_ENCODING, CONNECTION].contains(name) {
            continue;
        }
        if configured[..position].iter().any(|(earlier, _)| earlier == name) {
            headers.append(name, value.clone());
        } else {
            headers.insert(name, value.clone());
        }
    }
}
