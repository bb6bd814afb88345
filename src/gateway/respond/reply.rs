//! Writes the gateway's own answers: denials in their configured form, and errors.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, StatusCode, Version};
use http_body::Body;
use smallvec::SmallVec;

use super::page;
use super::page::{Page, PageSubject};
use super::refusal::{Attempts, Refusal, ReplyFormat, reply_format};
use crate::gateway::body::RequestBody;
use crate::gateway::exchange::Exchange;
use crate::gateway::fault::BadRequest;
use crate::gateway::respond::refusal;
use crate::gateway::response_body::ResponseBody;
use crate::gateway::snapshot::Snapshot;
use crate::gateway::stages::RequestId;
use crate::listen;
use crate::listen::{RefusedHead, Response};
use crate::rules::decision::{Denial, DenialCause, Penalty};
use crate::rules::key::KeyHash;
use crate::rules::limit::action::DenyBody;
use crate::rules::limit::{Count, DenyResponse};
use crate::store::StoreError;
use crate::wire::head::{FieldName, Fields, KnownName, NameSet, ResponseHead};
use crate::words::pool::Pooled;

const PROBLEM_JSON: &[u8] = b"application/problem+json";

const HTML: &[u8] = b"text/html; charset=utf-8";

const NO_STORE: &[u8] = b"no-store";

const CLOSE: &[u8] = b"close";

/// All methods of RFC 9110 and RFC 5789 except CONNECT and TRACE.
const METHODS: &[u8] = b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// Answers a denied request, which the application does not get. The connection closes after a body that was not read.
pub fn deny(
    exchange: Pooled<Exchange>,
    live: &Snapshot,
    is_body_read: bool,
    denial: &Denial,
) -> Response<ResponseBody> {
    let mut names: SmallVec<[&str; 2]> = SmallVec::new();
    let refusal = match &denial.cause {
        DenialCause::Listed { .. } | DenialCause::NotOnList | DenialCause::Banned | DenialCause::DeniedDescriptor => {
            Refusal::Forbidden
        }
        DenialCause::Challenged(_) => Refusal::Challenged,
        DenialCause::TooManyValues => Refusal::TooManyValues,
        DenialCause::Limited { limits, retry_after } => {
            let limits = limits.iter().filter_map(|id| live.policy.limits.get(usize::from(id.0)));
            names.extend(limits.map(|limit| &*limit.name));
            Refusal::Limited { limits: &names, wait: *retry_after, attempts: attempts(live, denial, *retry_after) }
        }
    };
    let (question, response) = (challenging(live, denial), denial.response(&live.policy));
    let mut answer = match &refusal {
        Refusal::Limited { .. } => {
            let mut answer = match question {
                Some((name, key)) => Reply::challenging(&exchange, &refusal, challenge_status(response), name, key),
                None => Reply::configured(&exchange, &refusal, response),
            };
            if let Some(seconds) = exchange.decided().retry_after {
                answer.set_retry_after(seconds);
            }
            answer
        }
        Refusal::Forbidden => Reply::built_in(&exchange, &refusal, StatusCode::FORBIDDEN),
        Refusal::Challenged => match question {
            Some((name, key)) => Reply::challenging(&exchange, &refusal, StatusCode::FORBIDDEN, name, key),
            None => Reply::built_in(&exchange, &refusal, StatusCode::FORBIDDEN),
        },
        Refusal::TooManyValues | Refusal::Unavailable | Refusal::Failed { .. } => {
            Reply::built_in(&exchange, &refusal, StatusCode::BAD_REQUEST)
        }
    };
    live.ratelimit_headers.write(&mut answer.fields, &exchange.decided().report);
    answer.close_unless(is_body_read, exchange.facts.head.version);
    if let Refusal::Limited { .. } = refusal {
        let policy = question.and_then(|_| answer.fields.get(KnownName::CONTENT_SECURITY_POLICY));
        let challenge_policy = policy.map(<[u8]>::to_vec);
        add_configured(&mut answer.fields, &response.headers);
        if let Some(challenge_policy) = challenge_policy {
            // A challenge page runs the gateway's script, and every page is different.
            answer.fields.insert(KnownName::CONTENT_SECURITY_POLICY, &challenge_policy);
            answer.fields.insert(KnownName::CACHE_CONTROL, NO_STORE);
        }
    }
    answer.finish(exchange)
}

/// What the client knows of the attempts that a limit has counted. Only where the limit counts failed sign-ins of one client to
/// one account has this client made them. A ban may have another reason, and a wait of a second means that sign-ins are under
/// way of which it is not known whether they fail.
fn attempts(live: &Snapshot, denial: &Denial, retry_after: Option<Duration>) -> Attempts {
    let Some(limit) = denial.limit.and_then(|id| live.policy.limits.get(usize::from(id.0))) else {
        return Attempts::Any;
    };
    let is_over = denial.penalty != Penalty::Ban && retry_after.is_some_and(|wait| wait > Duration::from_secs(1));
    let is_own = limit.count == Count::Failures && limit.key.is_login_of_client();
    if is_over && is_own { Attempts::WrongPasswords } else { Attempts::Any }
}

/// The name of the limit or list that challenges, and the key.
fn challenging<'l>(live: &'l Snapshot, denial: &'l Denial) -> Option<(&'l str, KeyHash)> {
    let Penalty::Challenge(key) = denial.penalty else { return None };
    if let DenialCause::Challenged(challenge) = &denial.cause {
        return Some((&challenge.list, key));
    }
    Some((&live.policy.limits.get(usize::from(denial.limit?.0))?.name, key))
}

/// The configured status, unless that cannot have a page.
fn challenge_status(response: &DenyResponse) -> StatusCode {
    let configured = response.status.filter(|status| !status.is_redirection() && *status != StatusCode::NO_CONTENT);
    configured.unwrap_or(DenyResponse::STATUS)
}

/// Answers a request that was refused before any rule was applied. Its connection closes, because the bytes that follow
/// are ambiguous.
pub fn refuse(mut exchange: Pooled<Exchange>, bad_request: BadRequest) -> Response<ResponseBody> {
    exchange.refuse(bad_request.to_string());
    let mut answer =
        Reply::built_in(&exchange, &Refusal::Failed { words: &bad_request.to_string() }, bad_request.status());
    if bad_request == BadRequest::Method {
        answer.fields.append(KnownName::ALLOW, METHODS);
    }
    if exchange.facts.head.version < Version::HTTP_2 {
        answer.fields.append(KnownName::CONNECTION, CLOSE);
    }
    answer.finish(exchange)
}

/// The answer to a malformed head, in the form that the `fields` ask for. `reason` begins in lower case and has no dot.
pub fn malformed(
    live: &Snapshot,
    refused: &RefusedHead,
    fields: &Fields,
    reason: &str,
    request_id: &RequestId,
) -> listen::Refusal {
    let (refusal, status) = (Refusal::Failed { words: reason }, refused.status);
    let mut answer = Fields::default();
    let (content_type, body) = match reply_format(fields) {
        ReplyFormat::Grpc(content_type) => {
            refusal::write(&mut answer, &refusal, status);
            (content_type.as_bytes(), Bytes::new())
        }
        ReplyFormat::Html => {
            let method = refused.method.as_ref();
            let subject = PageSubject { refusal: &refusal, status, request_id, fields, method, retry_after: None };
            let page = page::page(&live.settings.pages, &subject);
            page.write_headers(&mut answer);
            (HTML, Bytes::copy_from_slice(&page.html))
        }
        ReplyFormat::Problem => {
            (PROBLEM_JSON, Bytes::copy_from_slice(&refusal::document(&refusal, status, request_id)))
        }
    };
    answer.append(KnownName::CONTENT_TYPE, content_type);
    answer.append(KnownName::CACHE_CONTROL, NO_STORE);
    answer.append(KnownName::X_REQUEST_ID, request_id.as_bytes());
    listen::Refusal { fields: answer, body }
}

/// Answers for an application that failed. The client gets `words`, the log has the `error`.
pub fn fail(
    mut exchange: Pooled<Exchange>,
    status: StatusCode,
    words: &str,
    error: impl Into<Cow<'static, str>>,
    after: AfterReply,
) -> Response<ResponseBody> {
    exchange.refuse(error);
    let mut answer = Reply::built_in(&exchange, &Refusal::Failed { words }, status);
    if after == AfterReply::Close {
        answer.fields.append(KnownName::CONNECTION, CLOSE);
    }
    answer.finish(exchange)
}

/// Answers a request during an outage of the store, if one of its limits denies meanwhile. The application does not get
/// the request.
pub fn cannot_decide(mut exchange: Pooled<Exchange>, is_body_read: bool, error: StoreError) -> Response<ResponseBody> {
    exchange.refuse(error.to_string());
    let mut answer = Reply::built_in(&exchange, &Refusal::Unavailable, StatusCode::SERVICE_UNAVAILABLE);
    if let Some(seconds) = exchange.decided().retry_after {
        answer.set_retry_after(seconds);
    }
    answer.close_unless(is_body_read, exchange.facts.head.version);
    answer.finish(exchange)
}

/// Answers a proxy that asked: the request may pass. The rest of a body that came along is read.
pub async fn pass(exchange: Pooled<Exchange>, body: RequestBody) -> Response<ResponseBody> {
    let is_body_read = body.is_empty() || Box::pin(body.discard()).await;
    let mut answer = Reply::empty(&exchange, StatusCode::OK);
    exchange.live.ratelimit_headers.write(&mut answer.fields, &exchange.decided().report);
    answer.close_unless(is_body_read, exchange.facts.head.version);
    answer.finish(exchange)
}

/// The use of the connection after an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AfterReply {
    KeepAlive,
    Close,
}

/// An answer that is being written.
#[derive(Debug)]
struct Reply {
    status: StatusCode,
    fields: Fields,
    content: ResponseBody,
}

impl Reply {
    fn new(exchange: &Exchange, status: StatusCode, content_type: &[u8], content: ResponseBody) -> Self {
        let mut answer = Self { status, fields: Fields::default(), content };
        answer.fields.append(KnownName::CONTENT_TYPE, content_type);
        answer.name(exchange);
        answer
    }

    /// Without content.
    fn empty(exchange: &Exchange, status: StatusCode) -> Self {
        let mut answer = Self { status, fields: Fields::default(), content: ResponseBody::Empty };
        answer.name(exchange);
        answer
    }

    /// It is for this request alone.
    fn name(&mut self, exchange: &Exchange) {
        self.fields.append(KnownName::CACHE_CONTROL, NO_STORE);
        self.fields.append(KnownName::X_REQUEST_ID, exchange.facts.request_id.as_bytes());
    }

    /// A page for browsers, a status for gRPC, and a problem document for all other clients.
    fn built_in(exchange: &Exchange, refusal: &Refusal<'_>, status: StatusCode) -> Self {
        Self::written(exchange, reply_format(&exchange.facts.head.fields), refusal, status)
    }

    fn written(exchange: &Exchange, format: ReplyFormat, refusal: &Refusal<'_>, status: StatusCode) -> Self {
        match format {
            ReplyFormat::Grpc(content_type) => {
                let whole = if exchange.facts.front.takes_success_for_pass() { status } else { StatusCode::OK };
                let mut answer = Self::new(exchange, whole, content_type.as_bytes(), ResponseBody::Empty);
                refusal::write(&mut answer.fields, refusal, status);
                answer
            }
            ReplyFormat::Html => {
                let retry_after = match refusal {
                    Refusal::Limited { .. } | Refusal::Unavailable => exchange.decided().retry_after,
                    _ => None,
                };
                let subject = PageSubject {
                    refusal,
                    status,
                    request_id: &exchange.facts.request_id,
                    fields: &exchange.facts.head.fields,
                    method: Some(&exchange.facts.head.method),
                    retry_after,
                };
                Self::page(exchange, status, page::page(&exchange.live.settings.pages, &subject))
            }
            ReplyFormat::Problem => {
                let json = refusal::document(refusal, status, &exchange.facts.request_id);
                Self::new(exchange, status, PROBLEM_JSON, ResponseBody::Written(json))
            }
        }
    }

    fn page(exchange: &Exchange, status: StatusCode, page: Page) -> Self {
        let mut answer = Self::new(exchange, status, HTML, ResponseBody::Empty);
        page.write_headers(&mut answer.fields);
        answer.content = ResponseBody::Written(page.html);
        answer
    }

    /// A challenge page for browsers, a problem document for all other clients.
    fn challenging(exchange: &Exchange, refusal: &Refusal<'_>, status: StatusCode, name: &str, key: KeyHash) -> Self {
        let status = refusing(exchange, status);
        let format = reply_format(&exchange.facts.head.fields);
        if format != ReplyFormat::Html {
            return Self::written(exchange, format, refusal, status);
        }
        Self::page(exchange, status, page::challenge(exchange, name, key, refusal))
    }

    /// A denial in its configured form.
    fn configured(exchange: &Exchange, refusal: &Refusal<'_>, response: &DenyResponse) -> Self {
        let format = reply_format(&exchange.facts.head.fields);
        if matches!(format, ReplyFormat::Grpc(_)) {
            // A gRPC client reads no page, and follows no redirect.
            return Self::written(exchange, format, refusal, StatusCode::TOO_MANY_REQUESTS);
        }
        let usual = if response.redirect.is_some() { StatusCode::SEE_OTHER } else { DenyResponse::STATUS };
        let status = refusing(exchange, response.status.unwrap_or(usual));
        let mut answer = match &response.body {
            Some(DenyBody::Verbatim { content_type, content }) => {
                Self::new(exchange, status, content_type.as_bytes(), ResponseBody::Full(content.clone()))
            }
            Some(DenyBody::Page(page)) if format == ReplyFormat::Html => {
                Self::new(exchange, status, HTML, ResponseBody::Full(page.clone()))
            }
            _ => Self::written(exchange, format, refusal, status),
        };
        if let Some(location) = &response.redirect {
            answer.fields.append(KnownName::LOCATION, location.as_bytes());
        }
        answer
    }

    /// Closes the connection if the body was not read.
    fn close_unless(&mut self, is_body_read: bool, version: Version) {
        if !is_body_read && version < Version::HTTP_2 {
            self.fields.append(KnownName::CONNECTION, CLOSE);
        }
    }

    fn set_retry_after(&mut self, seconds: u64) {
        self.fields.append(KnownName::RETRY_AFTER, itoa::Buffer::new().format(seconds).as_bytes());
    }

    /// Ends the exchange.
    fn finish(mut self, mut exchange: Pooled<Exchange>) -> Response<ResponseBody> {
        if exchange.facts.asks_for_tunnel && self.status.is_success() {
            // The client would take a successful status for the start of its tunnel.
            self.status = StatusCode::FORBIDDEN;
        }
        let is_bodiless = matches!(self.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let body = if is_bodiless {
            self.fields.remove(KnownName::CONTENT_TYPE);
            ResponseBody::Empty
        } else if exchange.facts.omits_body {
            let length = self.content.size_hint().lower();
            self.fields.append(KnownName::CONTENT_LENGTH, itoa::Buffer::new().format(length).as_bytes());
            ResponseBody::Empty
        } else {
            exchange.add_bytes_out(self.content.size_hint().lower());
            self.content
        };
        exchange.answer(self.status);
        Response { head: ResponseHead::new(self.status, self.fields), body }
    }
}

/// The configured status of a denial, unless a proxy that asked would take it for a pass.
fn refusing(exchange: &Exchange, configured: StatusCode) -> StatusCode {
    let misleads = exchange.facts.front.takes_success_for_pass() && configured.is_success();
    if misleads { StatusCode::TOO_MANY_REQUESTS } else { configured }
}

/// Configured headers replace the gateway's own. Several headers of one name become several lines.
fn add_configured(fields: &mut Fields, configured: &[(FieldName, HeaderValue)]) {
    for (position, (name, value)) in configured.iter().enumerate() {
        if matches!(name.known(), Some(known) if FRAMING.has(known)) {
            continue;
        }
        if configured[..position].iter().any(|(earlier, _)| earlier == name) {
            fields.append(name, value.as_bytes());
        } else {
            fields.insert(name, value.as_bytes());
        }
    }
}

/// The connection writes these itself.
const FRAMING: NameSet = NameSet::of(&[KnownName::CONTENT_LENGTH, KnownName::TRANSFER_ENCODING, KnownName::CONNECTION]);
