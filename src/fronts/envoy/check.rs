//! `Authorization/Check`: Envoy's filter `ext_authz` asks whether a request may pass.

use std::pin::pin;

use bytes::Bytes;
use envoy_types::pb::envoy::config::core::v3::{Address, SocketAddress, address};
use envoy_types::pb::envoy::service::auth::v3::attribute_context::HttpRequest;
use envoy_types::pb::envoy::service::auth::v3::authorization_server::Authorization;
use envoy_types::pb::envoy::service::auth::v3::check_response::HttpResponse;
use envoy_types::pb::envoy::service::auth::v3::{CheckRequest, CheckResponse, DeniedHttpResponse, OkHttpResponse};
use envoy_types::pb::envoy::r#type::v3::HttpStatus;
use envoy_types::pb::google::rpc::Status as RpcStatus;
use http::StatusCode;
use tonic::{Code, Request, Response, Status};

use super::description;
use super::description::{ATTRIBUTES, BadDescription, Description};
use crate::fronts::envoy::description::Write;
use crate::fronts::envoy::service::{CallContext, Denied, judge};
use crate::gateway::body::{DescribedBody, DescribedEnd, may_have_body};
use crate::gateway::exchange::Exchange;
use crate::gateway::respond::reply;
use crate::gateway::stages::Front;
use crate::gateway::{Passed, headers};
use crate::wire::head::{Fields, KnownName};

/// `true`: the body is longer than the part that Envoy shows.
const PARTIAL_BODY: &str = "x-envoy-auth-partial-body";

#[tonic::async_trait]
impl Authorization for CallContext {
    async fn check(&self, call: Request<CheckRequest>) -> Result<Response<CheckResponse>, Status> {
        let answered = answered(self, call.into_inner()).await;
        answered.map(Response::new).map_err(|bad| self.bad_description(bad))
    }
}

async fn answered(context: &CallContext, request: CheckRequest) -> Result<CheckResponse, BadDescription> {
    let attributes = request.attributes.ok_or(BadDescription::Missing("attributes"))?;
    let source = attributes.source.and_then(|source| socket_address(source.address?));
    let http = attributes.request.and_then(|request| request.http);
    let http = http.ok_or(BadDescription::Missing("attributes.request.http"))?;
    if !http.body.is_empty() && !http.raw_body.is_empty() {
        return Err(BadDescription::Twice("attributes.request.http.raw_body"));
    }
    let ShownBody { start, end } = ShownBody::of(&http, context.live.settings.inspect_body);
    let mut description = Description::default();
    if let Err(bad) = describe(&mut description, http, source.as_ref()) {
        return Err(context.undescribed(&description, bad));
    }
    let (body, writer) = DescribedBody::channel();
    writer.push(start);
    writer.end(end);
    let original = OriginalFields::of(description.fields());
    let mut judged = pin!(judge(context, description, &ATTRIBUTES, body.into(), Front::ExtAuthz));
    let judged = tokio::select! {
        biased;
        judged = &mut judged => judged?,
        // Said before the request ends by it, which is recorded then.
        () = writer.wanted(), if end == DescribedEnd::Withheld => {
            return Err(context.undescribed(&Description::default(), BadDescription::Missing("attributes.request.http.raw_body")));
        }
    };
    Ok(match judged {
        Ok(passed) => pass(passed, original).await,
        Err(denied) => deny(denied),
    })
}

/// A client on a Unix socket has none.
fn socket_address(address: Address) -> Option<SocketAddress> {
    match address.address? {
        address::Address::SocketAddress(socket) => Some(socket),
        _ => None,
    }
}

/// The part of a body that Envoy shows.
struct ShownBody {
    start: Bytes,
    end: DescribedEnd,
}

impl ShownBody {
    /// At most `bound` bytes. They are copied, so that the rest of the message is not kept.
    fn of(http: &HttpRequest, bound: usize) -> Self {
        let whole = if http.raw_body.is_empty() { http.body.as_bytes() } else { &http.raw_body };
        let start = Bytes::copy_from_slice(&whole[..whole.len().min(bound)]);
        let end = if start.len() < whole.len() { DescribedEnd::Cut } else { Self::end(http, start.len()) };
        Self { start, end }
    }

    /// How a body ends of which Envoy shows `shown` bytes, fewer than the gateway reads.
    ///
    /// Envoy adds a field if it shows bodies. The field is `false` also if the body goes on after a full buffer, and
    /// clients may send it, too. So a body of Envoy's is whole only if it is as long as its head says. Another proxy that asks
    /// shows a body without that field: it is whole, unless its head says otherwise.
    fn end(http: &HttpRequest, shown: usize) -> DescribedEnd {
        let mut says = values(http, PARTIAL_BODY).peekable();
        let shows_bodies = says.peek().is_some();
        if says.any(|value| value == b"true") {
            return DescribedEnd::Cut;
        }
        let mut lengths = values(http, "content-length").peekable();
        let has_length = lengths.peek().is_some();
        if has_length && lengths.all(|length| length == shown.to_string().as_bytes()) {
            return DescribedEnd::Whole;
        }
        let is_chunked = values(http, "transfer-encoding").next().is_some();
        let is_longer = u64::try_from(http.size).is_ok_and(|size| size > shown as u64);
        if shown > 0 && !(shows_bodies || has_length || is_chunked || is_longer) {
            return DescribedEnd::Whole;
        }
        let is_announced = has_length || http.size != 0 || is_chunked;
        if shown == 0 && is_announced && !shows_bodies {
            return DescribedEnd::Withheld;
        }
        let has = |name: KnownName| values(http, name.as_str()).next().is_some();
        if shown == 0 && !is_announced && !may_have_body(&http.method, has) {
            return DescribedEnd::Whole;
        }
        DescribedEnd::Cut
    }
}

/// The values of a header field, in either of both forms.
fn values<'h>(http: &'h HttpRequest, name: &str) -> impl Iterator<Item = &'h [u8]> {
    fields(http).filter(move |(known, _)| *known == name).map(|(_, value)| value)
}

fn fields(http: &HttpRequest) -> impl Iterator<Item = (&str, &[u8])> {
    let map = http.headers.iter().map(|(name, value)| (&**name, value.as_bytes()));
    map.chain(http.header_map.iter().flat_map(|map| &map.headers).map(description::name_and_value))
}

fn describe(
    description: &mut Description,
    http: HttpRequest,
    source: Option<&SocketAddress>,
) -> Result<(), BadDescription> {
    let map = http.header_map.as_ref();
    if map.is_some_and(|map| !http.headers.is_empty() || description::has_two_values(&map.headers)) {
        return Err(BadDescription::Twice("attributes.request.http.header_map"));
    }
    for (name, value) in fields(&http) {
        if name != PARTIAL_BODY {
            description.add(name, value)?;
        }
    }
    description.set_protocol(&http.protocol);
    description.set_method(http.method)?;
    description.set_path(http.path)?;
    description.set_host(http.host)?;
    description.set_scheme(http.scheme)?;
    if let Some(source) = source {
        let address = description::address(&source.address);
        description.source = Some(address.ok_or(BadDescription::Malformed(ATTRIBUTES.source))?);
    }
    Ok(())
}

async fn pass(mut passed: Passed, original: OriginalFields) -> CheckResponse {
    let RequestChanges { set, removed } = original.changes(&mut passed.exchange);
    let Passed { exchange, body, .. } = passed;
    let mut answer = reply::pass(exchange, body).await;
    answer.head.fields.remove(KnownName::CACHE_CONTROL);
    let answered = answer.head.fields.iter();
    let to_client = answered
        .map(|field| description::text(field.name.as_str(), field.value, description::answer_field_write(field.name)));
    let ok = OkHttpResponse {
        headers: set.iter().map(|(name, value)| description::text(name.as_str(), value, Write::Replace)).collect(),
        headers_to_remove: removed.iter().map(|name| name.as_str().to_owned()).collect(),
        response_headers_to_add: to_client.collect(),
        ..OkHttpResponse::default()
    };
    decision(Code::Ok, HttpResponse::OkResponse(ok))
}

fn deny(denied: Denied) -> CheckResponse {
    let Denied { status, fields, body } = denied;
    let code = if status == StatusCode::TOO_MANY_REQUESTS { Code::ResourceExhausted } else { Code::PermissionDenied };
    let response = DeniedHttpResponse {
        status: Some(HttpStatus { code: i32::from(status.as_u16()) }),
        headers: description::of_answer(&fields, description::text),
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    decision(code, HttpResponse::DeniedResponse(response))
}

fn decision(code: Code, response: HttpResponse) -> CheckResponse {
    let status = RpcStatus { code: code.into(), ..RpcStatus::default() };
    CheckResponse { status: Some(status), http_response: Some(response), ..CheckResponse::default() }
}

// The changes to a request that goes on to the application, except those that Envoy makes itself.

const CHANGING: [KnownName; 8] = [
    KnownName::ACCEPT_ENCODING,
    KnownName::COOKIE,
    KnownName::IF_MATCH,
    KnownName::IF_MODIFIED_SINCE,
    KnownName::IF_NONE_MATCH,
    KnownName::IF_RANGE,
    KnownName::IF_UNMODIFIED_SINCE,
    KnownName::RANGE,
];

/// The fields that are set and removed in a request.
#[derive(Debug, Default, PartialEq)]
pub(super) struct RequestChanges {
    pub(super) set: Vec<(KnownName, Vec<u8>)>,
    pub(super) removed: Vec<KnownName>,
}

/// The fields of a request that the gateway may change, as they came.
#[derive(Debug)]
pub(super) struct OriginalFields(Vec<(KnownName, Vec<u8>)>);

impl OriginalFields {
    pub(super) fn of(fields: &Fields) -> Self {
        Self(CHANGING.iter().filter(|name| fields.has(**name)).map(|name| (*name, joined(fields, *name))).collect())
    }

    /// The cookies of the gateway itself are not for the application. An answer that is read for its outcome must be complete,
    /// unconditional, and in an encoding that can be decoded.
    pub(super) fn changes(self, exchange: &mut Exchange) -> RequestChanges {
        let needs_body = exchange.reservation.outcome_rule().map(|rule| rule.needs_body());
        let request_id = exchange.facts.request_id.as_bytes().to_vec();
        let fields = &mut exchange.facts.head.fields;
        headers::strip_request_cookies(fields);
        if let Some(needs_body) = needs_body {
            headers::prepare_for_outcome(fields, needs_body);
        }
        let mut changes = RequestChanges { set: vec![(KnownName::X_REQUEST_ID, request_id)], removed: Vec::new() };
        for (name, came) in self.0 {
            if !fields.has(name) {
                changes.removed.push(name);
                continue;
            }
            let goes = joined(fields, name);
            if goes != came {
                changes.set.push((name, goes));
            }
        }
        changes
    }
}

fn joined(fields: &Fields, name: KnownName) -> Vec<u8> {
    let separator: &[u8] = if name == KnownName::COOKIE { b"; " } else { b", " };
    fields.get_all(name).collect::<Vec<_>>().join(separator)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: usize = 8;

    fn end(method: &str, body: &str, size: i64, fields: &[(&str, &str)]) -> DescribedEnd {
        let headers = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let http =
            HttpRequest { method: method.to_owned(), raw_body: body.into(), size, headers, ..HttpRequest::default() };
        ShownBody::of(&http, BOUND).end
    }

    #[test]
    fn a_body_is_whole_only_where_it_is_as_long_as_the_head_says() {
        let (length, partial) = ("content-length", PARTIAL_BODY);
        let whole = DescribedEnd::Whole;
        assert_eq!(end("POST", "a=b", 3, &[(length, "3")]), whole);
        assert_eq!(end("POST", "a=b", -1, &[(length, "3"), (partial, "false")]), whole);
        assert_eq!(end("POST", "", 0, &[(length, "0")]), whole);
        for fields in [
            &[(length, "4")][..],
            &[(length, "4"), (partial, "false")],
            &[(length, "3"), (partial, "true")],
            &[(length, "03")],
            &[(partial, "false")],
            &[("transfer-encoding", "chunked")],
        ] {
            assert_eq!(end("POST", "a=b", 3, fields), DescribedEnd::Cut, "{fields:?}");
        }
        // Not of Envoy, which adds the field of partial bodies.
        assert!([0, 3, -1].iter().all(|size| end("POST", "a=b", *size, &[]) == whole));
        assert_eq!(end("POST", "a=b", 4, &[]), DescribedEnd::Cut);
        assert_eq!(end("POST", "a=b&c=d&e", 9, &[(length, "9")]), DescribedEnd::Cut, "it is longer than the bound");
    }

    #[test]
    fn a_request_without_a_body_is_one_only_where_nothing_says_otherwise() {
        let partial = (PARTIAL_BODY, "false");
        assert_eq!(end("GET", "", 0, &[]), DescribedEnd::Whole);
        assert_eq!(end("GET", "", 0, &[partial]), DescribedEnd::Whole);
        for fields in [&[("content-length", "4")][..], &[("transfer-encoding", "chunked")]] {
            assert_eq!(end("GET", "", 0, fields), DescribedEnd::Withheld, "{fields:?}");
            // A client may have sent the field.
            assert_eq!(end("GET", "", 0, &[fields, &[partial]].concat()), DescribedEnd::Cut, "{fields:?}");
        }
        assert_eq!(end("GET", "", 4, &[]), DescribedEnd::Withheld);
        assert_eq!(end("GET", "", 0, &[("content-type", "application/json")]), DescribedEnd::Cut);
        assert_eq!(end("POST", "", 0, &[]), DescribedEnd::Cut);
        assert_eq!(end("POST", "", 0, &[partial]), DescribedEnd::Cut);
    }
}
