//! Forward auth: a proxy describes a request in the head of its question, and forwards the request itself if the answer is a
//! success (nginx `auth_request`, Caddy `forward_auth`, Traefik `forwardAuth`).

use std::sync::Arc;

use http::{Method, StatusCode, Version};
use http_body::Body;

use crate::fronts::Complaints;
use crate::gateway::admit::framing;
use crate::gateway::body::{BodyBounds, ClientBody, DescribedBody, RequestBody, may_have_body};
use crate::gateway::exchange::Exchange;
use crate::gateway::fault::BadRequest;
use crate::gateway::headers::forwarded_scheme;
use crate::gateway::respond::reply;
use crate::gateway::respond::reply::AfterReply;
use crate::gateway::stages::{Facts, Front};
use crate::gateway::{Arrival, Gateway, Passed, Persistence, ResponseBody, judge};
use crate::listen::{Connection, IncomingRequest, InterimSender, Response};
use crate::rules::client::Networks;
use crate::wire::head::{Fields, KnownName, Name, RequestHead, Span, Target};
use crate::words::pool::Pooled;

// The paths that proxies ask under.

/// How a proxy describes requests, and which answers it takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Endpoint {
    /// `/auth`: `X-Forwarded-*` or `X-Original-*`, and the answer that the client gets.
    Auth,
    /// `/auth/nginx`: `X-Original-*` alone, because nginx passes every other header of its client along. It takes no status
    /// for a denial but 401 and 403.
    Nginx,
}

impl Endpoint {
    /// `None`: no front answers under this path. The query of a question is the client's, or empty.
    pub(super) fn of(path: &str) -> Option<Self> {
        match path {
            "/auth" => Some(Self::Auth),
            "/auth/nginx" => Some(Self::Nginx),
            _ => None,
        }
    }
}

// Answers the question of a proxy.

/// Answers one question of a proxy with the decision about the request that it describes. `askers` are the proxies that may
/// ask.
pub(in crate::fronts) async fn answer_question(
    gateway: Gateway,
    complaints: Complaints,
    askers: Arc<Networks>,
    connection: Arc<Connection>,
    question: IncomingRequest,
    interim: InterimSender,
) -> Response<ResponseBody> {
    let live = gateway.snapshot();
    let IncomingRequest { mut head, body, upgrade: _ } = question;
    let body = ClientBody::new(body, head.version);
    let (omits_body, started) = (head.method == Method::HEAD, gateway.now());
    let identity = live.clients.identify_asked(connection.peer.ip(), &askers, &head.fields);
    let own_scheme = if connection.tls_info().is_some() { "https" } else { "http" };
    let (endpoint, length) = (Endpoint::of(head.path()), body.size_hint().lower());
    let read = framing::admit(&mut head, &connection, None, &live.settings, length)
        .map_err(BadQuestion::Framing)
        .and_then(|()| read(endpoint, &head, own_scheme));
    let facts = |head, scheme| Facts::described(head, identity, &live, scheme, Front::ForwardAuth, omits_body, started);
    let (endpoint, description) = match read {
        Ok(read) => read,
        Err(bad) => {
            if let BadQuestion::Description(bad) = &bad {
                complaints.bad_description(connection.peer.ip(), bad.header(), bad, started);
            }
            let refused = refuse(gateway.begin(&live, facts(head, own_scheme), None, interim), &body, bad);
            return match (endpoint, bad) {
                // The client brought the proxy to ask so.
                (Some(endpoint), BadQuestion::Framing(_)) => deny(endpoint, refused),
                _ => refused,
            };
        }
    };
    let scheme = description.scheme;
    let judged = match description.target(&mut head) {
        Ok(target) => {
            let head = description.into_head(target, head);
            let body = RequestBody::new(shown_or_unseen(body, &head), BodyBounds::of(&live.settings));
            let exchange = gateway.begin(&live, facts(head, scheme), body.progress(), interim);
            let arrival = Arrival { exchange, body, upgrade: None, tls: None };
            judge(&live, &connection, arrival, &Persistence::default()).await
        }
        Err(bad) => {
            let shown = description.shown_target(&mut head);
            let head = description.into_head(shown, head);
            let exchange = gateway.begin(&live, facts(head, scheme), None, interim);
            Err(refuse(exchange, &body, BadQuestion::Framing(bad)))
        }
    };
    match judged {
        Ok(passed) => pass(passed).await,
        Err(denied) => deny(endpoint, denied),
    }
}

/// Most proxies keep the body of the request they ask about, and nothing in their question tells that from none.
fn shown_or_unseen(body: ClientBody, head: &RequestHead) -> ClientBody {
    let is_unseen = body.is_end_stream() && may_have_body(head.method.as_str(), |name| head.fields.has(name));
    if is_unseen { DescribedBody::unseen().into() } else { body }
}

/// Reads the description of a request and the form of the answer. Framing checks have settled the host of the head.
/// `own_scheme` is the scheme of the proxy's connection.
fn read(
    endpoint: Option<Endpoint>,
    question: &RequestHead,
    own_scheme: &'static str,
) -> Result<(Endpoint, Description), BadQuestion> {
    let endpoint = endpoint.ok_or(BadQuestion::Path)?;
    Ok((endpoint, Description::read(endpoint, &question.fields, own_scheme)?))
}

// The request that a proxy would ask about, where there is no proxy.

/// The head that is judged where a client sends `request`, with its one host, for `target` as it is written, and the proxy
/// describes it under `/auth` in `X-Forwarded-*`. An error is why the gateway answers the question with 400.
pub fn asked(mut request: RequestHead, target: &str) -> Result<RequestHead, String> {
    let host = request.fields.get(KnownName::HOST).unwrap_or_default().to_vec();
    let method = request.method.clone();
    // The proxy overwrites the client's fields.
    for (name, value) in [
        ("x-forwarded-method", method.as_str().as_bytes()),
        ("x-forwarded-proto", b"http"),
        ("x-forwarded-host", &host),
        ("x-forwarded-uri", target.as_bytes()),
    ] {
        request.fields.insert(Name::of(name), value);
    }
    let read = Description::read(Endpoint::Auth, &request.fields, "http");
    let description = read.map_err(|bad| BadQuestion::Description(bad).to_string())?;
    let target = description.target(&mut request).map_err(|bad| BadQuestion::Framing(bad).to_string())?;
    Ok(description.into_head(target, request))
}

// Reads which request a proxy asks about. The client writes headers too: what could be its word instead of the proxy's is
// refused.

/// In bytes: enough to recognise the request.
const MAX_LOGGED: usize = 1024;

const FORWARDED_METHOD: Header = Header("X-Forwarded-Method", "x-forwarded-method");

const FORWARDED_PROTO: Header = Header("X-Forwarded-Proto", "x-forwarded-proto");

const FORWARDED_HOST: Header = Header("X-Forwarded-Host", "x-forwarded-host");

const FORWARDED_URI: Header = Header("X-Forwarded-Uri", "x-forwarded-uri");

const ORIGINAL_METHOD: Header = Header("X-Original-Method", "x-original-method");

const ORIGINAL_URI: Header = Header("X-Original-URI", "x-original-uri");

const ORIGINAL_URL: Header = Header("X-Original-URL", "x-original-url");

const HOST: Header = Header("Host", "host");

const ORIGINAL: [Header; 3] = [ORIGINAL_METHOD, ORIGINAL_URI, ORIGINAL_URL];

/// The proxy writes them, not the client, so keys do not see them.
const DESCRIBING: [Header; 7] =
    [FORWARDED_METHOD, FORWARDED_PROTO, FORWARDED_HOST, FORWARDED_URI, ORIGINAL_METHOD, ORIGINAL_URI, ORIGINAL_URL];

/// The request that a question describes.
#[derive(Debug)]
pub(super) struct Description {
    method: Method,
    /// Path and query, or the whole URL.
    target: Span,
    /// `None`: the host of the URL.
    host: Option<Span>,
    /// The scheme of the client's connection.
    pub(super) scheme: &'static str,
}

/// Why a question describes no request.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum BadDescription {
    #[error("{0} is missing, so that the request is not described")]
    Missing(&'static str),
    #[error("{0} is there more than once")]
    Repeated(&'static str),
    #[error("{0} describes the request a second time")]
    Twice(&'static str),
    #[error("{0} is malformed")]
    Malformed(&'static str),
}

impl BadDescription {
    /// The header that it is about.
    pub fn header(self) -> &'static str {
        match self {
            Self::Missing(header) | Self::Repeated(header) | Self::Twice(header) | Self::Malformed(header) => header,
        }
    }
}

impl Description {
    /// Reads the description in the head of a question. Framing checks have settled the host. `own_scheme`, the scheme
    /// of the proxy's connection, is used if the proxy does not send the scheme of the client's connection.
    pub(super) fn read(endpoint: Endpoint, fields: &Fields, own_scheme: &'static str) -> Result<Self, BadDescription> {
        match endpoint {
            Endpoint::Nginx => Self::original_uri(fields, own_scheme),
            Endpoint::Auth if fields.get(FORWARDED_URI.name()).is_some() => {
                // A client of a proxy that describes in one way may send the headers of the other.
                match ORIGINAL.iter().find(|header| fields.get(header.name()).is_some()) {
                    Some(second) => Err(BadDescription::Twice(second.0)),
                    None => Self::forwarded(fields),
                }
            }
            Endpoint::Auth => match ORIGINAL.iter().any(|header| fields.get(header.name()).is_some()) {
                false => Err(BadDescription::Missing(FORWARDED_URI.0)),
                true if fields.get(FORWARDED_METHOD.name()).is_some() => Err(BadDescription::Twice(FORWARDED_METHOD.0)),
                true if fields.get(ORIGINAL_URL.name()).is_none() => Self::original_uri(fields, own_scheme),
                true if fields.get(ORIGINAL_URI.name()).is_some() => Err(BadDescription::Twice(ORIGINAL_URL.0)),
                true => Self::original_url(fields),
            },
        }
    }

    fn forwarded(fields: &Fields) -> Result<Self, BadDescription> {
        let target = FORWARDED_URI.span(fields)?;
        let method = FORWARDED_METHOD.method(fields)?;
        let host = Some(FORWARDED_HOST.span(fields)?);
        let scheme = forwarded_proto(fields)?;
        Ok(Self { method, target, host, scheme })
    }

    fn original_uri(fields: &Fields, own_scheme: &'static str) -> Result<Self, BadDescription> {
        let target = ORIGINAL_URI.span(fields)?;
        let method = ORIGINAL_METHOD.method(fields)?;
        let host = Some(HOST.span(fields)?);
        let scheme = forwarded_proto(fields).unwrap_or(own_scheme);
        Ok(Self { method, target, host, scheme })
    }

    fn original_url(fields: &Fields) -> Result<Self, BadDescription> {
        let target = ORIGINAL_URL.span(fields)?;
        let method = ORIGINAL_METHOD.method(fields)?;
        let url = fields.slice(target);
        let begins = |start: &[u8]| url.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start));
        let scheme = match () {
            () if begins(b"https://") => "https",
            () if begins(b"http://") => "http",
            () => return Err(BadDescription::Malformed(ORIGINAL_URL.0)),
        };
        Ok(Self { method, target, host: None, scheme })
    }

    /// The target of the request, whose text is in the head of the question. It is the client's, so that a malformed one
    /// says nothing about the proxy. One with a fragment is malformed: no request has one, and the proxy forwards it to an
    /// application that may read on behind it, and so is an authority alone.
    pub(super) fn target(&self, question: &mut RequestHead) -> Result<Target, BadRequest> {
        let written = question.fields.slice(self.target);
        let is_authority = !matches!(written, [b'/', ..] | b"*") && !written.windows(3).any(|part| part == b"://");
        if is_authority || written.contains(&b'#') {
            return Err(BadRequest::Target);
        }
        Target::parse(&mut question.fields, self.target).map_err(|_| BadRequest::Target)
    }

    /// In place of a malformed target: its start as it was written, for the log.
    pub(super) fn shown_target(&self, question: &mut RequestHead) -> Target {
        let written = question.fields.slice(self.target);
        let start = &written[..written.len().min(MAX_LOGGED)];
        let start = String::from_utf8_lossy(start).into_owned();
        Target::unparsed(&mut question.fields, &start)
    }

    /// Turns the head of the question into the head of the request.
    pub(super) fn into_head(self, target: Target, question: RequestHead) -> RequestHead {
        let mut head = RequestHead::new(self.method, target, question.version, question.fields);
        let host = match self.host {
            Some(host) => head.fields.slice(host).to_vec(),
            None => head.authority().unwrap_or_default().as_bytes().to_vec(),
        };
        for header in DESCRIBING {
            head.fields.remove(header.name());
        }
        head.fields.insert(KnownName::HOST, &host);
        // The log has it as it was described, should it be malformed.
        head.use_host_field();
        head
    }
}

/// A header by its name as people write it.
#[derive(Clone, Copy, Debug)]
struct Header(&'static str, &'static str);

impl Header {
    fn name(self) -> Name<'static> {
        Name::of(self.1)
    }

    /// Where the one value stands.
    fn span(self, fields: &Fields) -> Result<Span, BadDescription> {
        match fields.single_span(self.name()) {
            Some(value) if value.is_empty() => Err(BadDescription::Missing(self.0)),
            Some(value) => Ok(value),
            None if fields.get(self.name()).is_some() => Err(BadDescription::Repeated(self.0)),
            None => Err(BadDescription::Missing(self.0)),
        }
    }

    fn method(self, fields: &Fields) -> Result<Method, BadDescription> {
        Method::from_bytes(fields.slice(self.span(fields)?)).map_err(|_| BadDescription::Malformed(self.0))
    }
}

/// WebSocket is HTTP until it is upgraded.
fn forwarded_proto(fields: &Fields) -> Result<&'static str, BadDescription> {
    FORWARDED_PROTO.span(fields)?;
    match forwarded_scheme(fields) {
        Some("http" | "ws") => Ok("http"),
        Some(_) => Ok("https"),
        None => Err(BadDescription::Malformed(FORWARDED_PROTO.0)),
    }
}

// Why a question is not decided.

/// Why a question has no decision for an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(super) enum BadQuestion {
    #[error("{0}")]
    Framing(#[from] BadRequest),
    #[error("decisions are answered under /auth and /auth/nginx")]
    Path,
    #[error("{0}")]
    Description(#[from] BadDescription),
}

// Writes the answers that proxies get.

/// The status of a denial for nginx.
const MEANT_STATUS: &str = "x-portcullis-status";

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

/// Nothing is decided. The question stands in the log with what could be read of it.
pub(super) fn refuse(exchange: Pooled<Exchange>, body: &ClientBody, bad: BadQuestion) -> Response<ResponseBody> {
    let version = exchange.facts.head.version;
    let status = match bad {
        BadQuestion::Framing(bad_request) => return reply::refuse(exchange, bad_request),
        BadQuestion::Path => StatusCode::NOT_FOUND,
        BadQuestion::Description(_) => StatusCode::BAD_REQUEST,
    };
    let words = bad.to_string();
    let is_over = body.is_end_stream() || version >= Version::HTTP_2;
    let after = if is_over { AfterReply::KeepAlive } else { AfterReply::Close };
    reply::fail(exchange, status, &words, words.clone(), after)
}
