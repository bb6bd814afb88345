//! Has the gateway judge a request that Envoy describes.

use bytes::Bytes;
use http::Method;
use http::StatusCode;
use http_body_util::BodyExt;
use http_body_util::Collected;

use super::call_context::CallContext;
use super::description::BadDescription;
use super::description::Description;
use super::description::MalformedHead;
use crate::client::Identity;
use crate::gateway;
use crate::gateway::Arrival;
use crate::gateway::Passed;
use crate::gateway::ResponseBody;
use crate::gateway::admit::body::ClientBody;
use crate::gateway::facts::Facts;
use crate::gateway::facts::Front;
use crate::head::Fields;
use crate::head::KnownName;
use crate::listen::InterimSender;
use crate::listen::Refusal;
use crate::listen::RefusedHead;
use crate::listen::Response;

/// The answer that the client gets in place of the application's.
#[derive(Debug)]
pub(super) struct Denied {
    pub(super) status: StatusCode,
    pub(super) fields: Fields,
    pub(super) body: Bytes,
}

/// Decides about the request. Delays and tarpits have passed by then.
pub(super) async fn judge(
    context: &CallContext,
    description: Description,
    body: ClientBody,
    front: Front,
) -> Result<Result<Passed, Denied>, BadDescription> {
    let CallContext { gateway, live, connection, .. } = context;
    let asker = connection.peer.ip();
    let identity = live.clients.identify_shown(asker, description.source, description.fields());
    let identity = identity.ok_or(BadDescription::Missing("the address of the client"))?;
    let scheme = description.scheme();
    let head = match description.into_head()? {
        Ok(head) => head,
        Err(malformed) => return Ok(Err(refuse(context, identity, scheme, malformed))),
    };
    // Envoy itself leaves the body out of an answer to HEAD.
    let facts = Facts::described(head, identity, live, scheme, front, false, gateway.now());
    let mut exchange = gateway.begin(live, facts, InterimSender::default());
    exchange.set_call_fault(context.fault.clone());
    let arrival = Arrival { exchange, body, upgrade: None, tls: None };
    Ok(match gateway::judge(live, connection, arrival).await {
        Ok(passed) => Ok(passed),
        Err(response) => Err(Denied::of(response).await),
    })
}

fn refuse(context: &CallContext, identity: Identity, scheme: &'static str, malformed: MalformedHead) -> Denied {
    let MalformedHead { reason, method, path, host } = malformed;
    let status = StatusCode::BAD_REQUEST;
    let (path, query) = match path.split_once('?') {
        Some((path, query)) => (path.to_owned(), Some(query.to_owned())),
        None => (path, None),
    };
    let method = Method::from_bytes(method.as_bytes()).ok();
    let refused = RefusedHead { status, method, path: Some(path), query, host: Some(host) };
    let Refusal { mut fields, body } =
        context.gateway.refuse_described(&context.live, identity, scheme, &refused, reason);
    fields.append(KnownName::CACHE_CONTROL, b"no-store");
    Denied { status, fields, body }
}

impl Denied {
    /// The whole answer is here already.
    async fn of(response: Response<ResponseBody>) -> Self {
        let Response { head, body } = response;
        let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
        Self { status: head.status, fields: head.fields, body }
    }
}
