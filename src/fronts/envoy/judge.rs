//! Has the gateway judge a request that Envoy describes.

use bytes::Bytes;
use http::StatusCode;
use http_body_util::BodyExt;
use http_body_util::Collected;

use super::call_context::CallContext;
use super::description::BadDescription;
use super::description::Description;
use super::description::MalformedHead;
use super::description::PartNames;
use crate::client::Identity;
use crate::gateway;
use crate::gateway::Arrival;
use crate::gateway::Passed;
use crate::gateway::ResponseBody;
use crate::gateway::admit::body::ClientBody;
use crate::gateway::facts::Facts;
use crate::gateway::facts::Front;
use crate::head::Fields;
use crate::listen::InterimSender;
use crate::listen::Refusal;
use crate::listen::Response;

/// The answer that the client gets in place of the application's.
#[derive(Debug)]
pub(super) struct Denied {
    pub(super) status: StatusCode,
    pub(super) fields: Fields,
    pub(super) body: Bytes,
}

/// Decides about the request. Delays and tarpits have passed by then. `names` are those of the parts of the description.
pub(super) async fn judge(
    context: &CallContext,
    description: Description,
    names: &PartNames,
    body: ClientBody,
    front: Front,
) -> Result<Result<Passed, Denied>, BadDescription> {
    let CallContext { gateway, live, connection, .. } = context;
    let asker = connection.peer.ip();
    let identity = live.clients.identify_shown(asker, description.source, description.fields());
    let identity = identity.ok_or(BadDescription::Missing(names.source));
    let identity = match identity.and_then(|identity| description.check(names).map(|()| identity)) {
        Ok(identity) => identity,
        Err(bad) => return Err(context.undescribed(&description, bad)),
    };
    let scheme = description.scheme();
    let head = match description.into_head() {
        Ok(head) => head,
        Err(malformed) => return Ok(Err(refuse(context, identity, scheme, *malformed))),
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
    let MalformedHead { reason, shown, fields } = malformed;
    let Refusal { fields, body } =
        context.gateway.refuse_described(&context.live, identity, scheme, (&shown, &fields), reason);
    Denied { status: shown.status, fields, body }
}

impl Denied {
    /// The whole answer is here already.
    async fn of(response: Response<ResponseBody>) -> Self {
        let Response { head, body } = response;
        let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
        Self { status: head.status, fields: head.fields, body }
    }
}
