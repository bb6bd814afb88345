//! Answers of our own: denials, as their configuration wants them to look, and what failed.

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
/// In seconds: Redis is back within a second, or it is not.
const UNDECIDED_WAIT: u16 = 1;
/// All that RFC 9110 and RFC 5789 name but CONNECT and TRACE.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");

/// Answers a denied request; the application does not hear of it. What is left of a short body is read, so that the
/// connection can go on; one with a longer body ends.
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
                None => Reply::shaped(&exchange, &refusal, denial.response),
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
        if let Some(of_the_challenge) = kept {
            // A page with a question runs a script of ours, and is never the same.
            answer.headers.insert(CONTENT_SECURITY_POLICY, of_the_challenge);
            answer.headers.insert(CACHE_CONTROL, NO_STORE);
        }
    }
    answer.finish(exchange)
}

/// The limit that asks for work, and for which key.
fn challenging<'l>(live: &'l Snapshot, denial: &Denial<'_>) -> Option<(&'l Limit, KeyHash)> {
    let Penalty::Challenge(key) = denial.penalty else { return None };
    Some((live.policy.limits.get(usize::from(denial.limit?.0))?, key))
}

/// Answers a request that was refused before any rule was asked. Its connection ends: what follows on it is as
/// doubtful as what came.
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

/// Answers for an application that did not; `words` go to the client, the error of the exchange to the log.
pub fn fail(mut exchange: Box<Exchange>, status: StatusCode, words: &str, after: AfterReply) -> Response<ResponseBody> {
    exchange.decision_mut().set_error();
    let mut answer = Reply::built_in(&exchange, &Refusal::Failed { words }, status);
    if after == AfterReply::Close {
        answer.headers.insert(CONNECTION, CLOSE);
    }
    answer.finish(exchange)
}

/// Answers while the store is away and a limit of the request denies meanwhile; the application does not hear of it.
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

/// Whether more requests may come over a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AfterReply {
    KeepAlive,
    Close,
}

/// An answer in the making.
#[derive(Debug)]
struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    content: Bytes,
}

impl Reply {
    fn new(exchange: &Exchange, status: StatusCode, content_type: HeaderValue, content: Bytes) -> Self {
        // As many as most answers have: room for one more would be twice the room.
        let mut headers = HeaderMap::with_capacity(6);
        headers.insert(CONTENT_TYPE, content_type);
        headers.insert(CACHE_CONTROL, NO_STORE);
        headers.insert(X_REQUEST_ID, exchange.facts.request_id.to_header());
        Self { status, headers, content }
    }

    /// A page for browsers, the status of a call for gRPC, a problem document for everyone else.
    fn built_in(exchange: &Exchange, refusal: &Refusal<'_>, status: StatusCode) -> Self {
        Self::written(exchange, exchange.facts.preference.reads(), refusal, status)
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

    /// A page that does some work for browsers, a problem document for everyone else. Of a response for denials it has
    /// the status, where that one goes with a page.
    fn challenging(
        exchange: &Exchange,
        refusal: &Refusal<'_>,
        response: &DenyResponse,
        limit: &Limit,
        key: KeyHash,
    ) -> Self {
        let configured = response.status.filter(|status| !status.is_redirection() && *status != StatusCode::NO_CONTENT);
        let status = configured.unwrap_or(StatusCode::TOO_MANY_REQUESTS);
        let format = exchange.facts.preference.reads();
        if format != ReplyFormat::Html {
            return Self::written(exchange, format, refusal, status);
        }
        let page = challenge_page::page(exchange, limit, key, refusal);
        let mut answer = Self::new(exchange, status, HTML, Bytes::from(page.html));
        answer.headers.insert(CONTENT_SECURITY_POLICY, page.content_security_policy);
        answer
    }

    /// As the configuration wants it.
    fn shaped(exchange: &Exchange, refusal: &Refusal<'_>, response: &DenyResponse) -> Self {
        let format = exchange.facts.preference.reads();
        if matches!(format, ReplyFormat::Grpc(_)) {
            // A call has no page, and follows no redirect.
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

    /// A connection with a body that nobody read ends.
    fn close_unless(&mut self, is_body_read: bool, version: Version) {
        if !is_body_read && version < Version::HTTP_2 {
            self.headers.insert(CONNECTION, CLOSE);
        }
    }

    /// Ends the exchange.
    fn finish(mut self, mut exchange: Box<Exchange>) -> Response<ResponseBody> {
        if exchange.facts.asks_for_tunnel && self.status.is_success() {
            // A denial that looks like a success would be taken for the tunnel.
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

/// As `HeaderValue::from` has it, in half the memory.
fn number(number: u64) -> HeaderValue {
    HeaderValue::from_str(itoa::Buffer::new().format(number)).expect("digits are visible")
}

/// Configured fields replace ours; several of one name are several lines.
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
