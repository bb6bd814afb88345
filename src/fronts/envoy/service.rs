//! Chooses the service of a call.

use std::sync::Arc;

use envoy_types::pb::envoy::service::auth::v3::authorization_server;
use envoy_types::pb::envoy::service::auth::v3::authorization_server::AuthorizationServer;
use envoy_types::pb::envoy::service::ext_proc::v3::external_processor_server;
use envoy_types::pb::envoy::service::ext_proc::v3::external_processor_server::ExternalProcessorServer;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_server;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_server::RateLimitServiceServer;
use http::Method;
use http::Version;
use tonic::Status;
use tonic_health::pb::health_server;
use tonic_health::pb::health_server::HealthServer;

use super::call;
use super::call_body::CallBody;
use super::call_body::MAX_MESSAGE;
use super::call_body::Messages;
use super::call_context::CallContext;
use crate::admin::AdminState;
use crate::fronts::Complaints;
use crate::gateway::CallFault;
use crate::gateway::Gateway;
use crate::gateway::ResponseBody;
use crate::head::KnownName;
use crate::head::RequestHead;
use crate::listen::Connection;
use crate::listen::IncomingRequest;
use crate::listen::Response;

/// Whether this is the head of a call of one of the services. The path decides: a question of forward auth has the
/// `Content-Type` of the client, and the status 200 of a failed call would let its request pass.
pub(in crate::fronts) fn is_call(head: &RequestHead) -> bool {
    let content_type = head.fields.single(KnownName::CONTENT_TYPE).unwrap_or_default();
    head.version == Version::HTTP_2
        && content_type.starts_with(b"application/grpc")
        && SERVICES.contains(&service_name(head))
}

const SERVICES: [&str; 4] = [
    authorization_server::SERVICE_NAME,
    external_processor_server::SERVICE_NAME,
    rate_limit_service_server::SERVICE_NAME,
    health_server::SERVICE_NAME,
];

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
    // Where the call got as far as its method, that has said what is wrong.
    if let Some(status) = status.filter(|_| !failures.fault.is_set()) {
        failures.unreadable(&status);
    }
    response
}

/// What stands before the method in the path of a call. Other methods of HTTP call nothing.
fn service_name(head: &RequestHead) -> &str {
    let path = if head.method == Method::POST { head.path() } else { "" };
    path.strip_prefix('/').and_then(|path| path.rsplit_once('/')).map_or("", |(service, _)| service)
}
