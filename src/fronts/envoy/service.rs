//! Chooses the service of a call.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use envoy_types::pb::envoy::service::auth::v3::authorization_server;
use envoy_types::pb::envoy::service::auth::v3::authorization_server::AuthorizationServer;
use envoy_types::pb::envoy::service::ext_proc::v3::external_processor_server;
use envoy_types::pb::envoy::service::ext_proc::v3::external_processor_server::ExternalProcessorServer;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_server;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_server::RateLimitServiceServer;
use http::{Method, StatusCode, Version};
use http_body_util::{BodyExt, Collected};
use tonic::{Code, Status};
use tonic_health::pb::health_server;
use tonic_health::pb::health_server::HealthServer;

use super::call;
use crate::admin::AdminState;
use crate::fronts::Complaints;
use crate::fronts::envoy::call::{CallBody, MAX_MESSAGE, Messages};
use crate::fronts::envoy::description::{BadDescription, Description, MalformedHead, PartNames};
use crate::gateway;
use crate::gateway::body::{BodyBounds, ClientBody, RequestBody};
use crate::gateway::stages::{Facts, Front};
use crate::gateway::{Arrival, CallFault, Gateway, Passed, Persistence, ResponseBody, Snapshot};
use crate::listen::{Connection, IncomingRequest, InterimSender, Refusal, RefusedHead, Response};
use crate::rules::client::{ClientIp, Identity};
use crate::rules::decision::descriptors::InvalidCall;
use crate::wire::head::{Fields, KnownName, RequestHead};

const SERVICES: [&str; 4] = [
    authorization_server::SERVICE_NAME,
    external_processor_server::SERVICE_NAME,
    rate_limit_service_server::SERVICE_NAME,
    health_server::SERVICE_NAME,
];

/// Whether this is the head of a call of one of the services. The path decides: a question of forward auth has the
/// `Content-Type` of the client, and the status 200 of a failed call would let its request pass.
pub(in crate::fronts) fn is_call(head: &RequestHead) -> bool {
    let content_type = head.fields.single(KnownName::CONTENT_TYPE).unwrap_or_default();
    head.version == Version::HTTP_2
        && content_type.starts_with(b"application/grpc")
        && SERVICES.contains(&service_name(head))
}

/// Answers a call. The future is dropped when the caller goes away.
pub(in crate::fronts) async fn answer_call(
    gateway: Gateway,
    complaints: Complaints,
    admin: Arc<AdminState>,
    connection: Arc<Connection>,
    request: IncomingRequest,
) -> Response<ResponseBody> {
    let live = gateway.snapshot();
    let IncomingRequest { head, body, .. } = request;
    let service = service_name(&head);
    let messages = match service {
        external_processor_server::SERVICE_NAME => Messages::Many,
        _ => Messages::One,
    };
    let request = call::request(&head, CallBody::new(body, messages, &connection, &live.settings));
    let context = CallContext { gateway, live, connection, complaints, fault: CallFault::default(), admin };
    let failures = context.clone();
    let (response, status) = match service {
        authorization_server::SERVICE_NAME => {
            call::answer(AuthorizationServer::new(context).max_decoding_message_size(MAX_MESSAGE), request).await
        }
        external_processor_server::SERVICE_NAME => {
            call::answer(ExternalProcessorServer::new(context).max_decoding_message_size(MAX_MESSAGE), request).await
        }
        rate_limit_service_server::SERVICE_NAME => {
            call::answer(RateLimitServiceServer::new(context).max_decoding_message_size(MAX_MESSAGE), request).await
        }
        health_server::SERVICE_NAME => {
            // It asks for no decision.
            return call::answer(HealthServer::new(context).max_decoding_message_size(MAX_MESSAGE), request).await.0;
        }
        service => {
            return call::refuse(Status::unimplemented(format!("there is no service {}", service.escape_default())));
        }
    };
    // If the call reached its method, the method has logged the mistake.
    if let Some(status) = status.filter(|_| !failures.fault.is_set()) {
        failures.unreadable(&status);
    }
    response
}

/// The service in the path of a call, before the method. Empty if the HTTP method is not POST: that is no call.
fn service_name(head: &RequestHead) -> &str {
    let path = if head.method == Method::POST { head.path() } else { "" };
    path.strip_prefix('/').and_then(|path| path.rsplit_once('/')).map_or("", |(service, _)| service)
}

// The context that every call of Envoy needs.

/// The connection and the configuration of one call.
#[derive(Clone, Debug)]
pub(super) struct CallContext {
    pub(super) gateway: Gateway,
    /// A call uses one configuration to its end.
    pub(super) live: Arc<Snapshot>,
    pub(super) connection: Arc<Connection>,
    pub(super) complaints: Complaints,
    pub(super) fault: CallFault,
    /// Knows whether the gateway is ready.
    pub(super) admin: Arc<AdminState>,
}

impl CallContext {
    /// The status of a call that describes no request. It is logged, because Envoy must be set up otherwise.
    pub(super) fn bad_description(&self, bad: BadDescription) -> Status {
        self.complaints.bad_description(self.asker(), bad.part(), &bad, self.gateway.now());
        self.undescribed(&Description::default(), bad);
        Status::invalid_argument(bad.to_string())
    }

    /// Records a call that breaks off by this mistake, with what it says of its request. Where the request has begun, that
    /// records the call itself.
    pub(super) fn undescribed(&self, description: &Description, bad: BadDescription) -> BadDescription {
        self.fault.set_mistake(&bad, StatusCode::BAD_REQUEST);
        if self.fault.claim_record() {
            let source = self.live.clients.identify_shown(self.asker(), description.source, description.fields());
            let identity = source.unwrap_or_else(|| self.asker_as_client());
            self.record(identity, description.scheme(), &description.shown(), &bad.to_string());
        }
        bad
    }

    /// Logs and records a call with an unreadable message, or with an unknown method.
    pub(super) fn unreadable(&self, status: &Status) {
        let http_status = match status.code() {
            // The caller has left.
            Code::Unavailable | Code::Cancelled => return,
            Code::DeadlineExceeded => StatusCode::REQUEST_TIMEOUT,
            Code::ResourceExhausted => StatusCode::PAYLOAD_TOO_LARGE,
            Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
            _ => StatusCode::BAD_REQUEST,
        };
        let words = match status.message() {
            // The service does not have this method.
            "" => status.code().description(),
            words => words,
        };
        self.complaints.bad_call(self.asker(), "the message", &words, self.gateway.now());
        self.fault.set_mistake(&words, http_status);
        if self.fault.claim_record() {
            let nothing = RefusedHead { status: http_status, ..Description::default().shown() };
            self.record(self.asker_as_client(), "http", &nothing, words);
        }
    }

    /// The status of a call about descriptors that is not decided. It was recorded with its domain.
    pub(super) fn invalid_call(&self, invalid: &InvalidCall) -> Status {
        self.complaints.bad_call(self.asker(), invalid.part(), invalid, self.gateway.now());
        self.fault.set_mistake(invalid, StatusCode::BAD_REQUEST);
        Status::invalid_argument(invalid.to_string())
    }

    fn asker(&self) -> IpAddr {
        self.connection.peer.ip()
    }

    /// The identity for a call that names no other client.
    fn asker_as_client(&self) -> Identity {
        let peer = ClientIp::new(self.asker());
        Identity { peer, peer_is_trusted: false, client: peer }
    }

    fn record(&self, identity: Identity, scheme: &'static str, shown: &RefusedHead, reason: &str) {
        self.gateway.record_undescribed(&self.live, identity, scheme, shown, reason);
    }
}

// Has the gateway judge a request that Envoy describes.

/// The answer that the client gets in place of the application's.
#[derive(Debug)]
pub(super) struct Denied {
    pub(super) status: StatusCode,
    pub(super) fields: Fields,
    pub(super) body: Bytes,
}

/// Decides about the request. Returns after the delay or tarpit. `names` are the names of the parts of the description.
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
    let facts = facts.with_call_fault(context.fault.clone());
    let body = RequestBody::new(body, BodyBounds::of(&live.settings));
    let exchange = gateway.begin(live, facts, body.progress(), InterimSender::default());
    let arrival = Arrival { exchange, body, upgrade: None, tls: None };
    Ok(match gateway::judge(live, connection, arrival, &Persistence::default()).await {
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
