//! `grpc.health.v1.Health`: whether the gateway decides, as `/readyz` of the admin listener says it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use envoy_types::pb::envoy::service::auth::v3::authorization_server;
use envoy_types::pb::envoy::service::ext_proc::v3::external_processor_server;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_server;
use tokio::time::{Interval, interval};
use tonic::codegen::tokio_stream::Stream;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::Health;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse, health_server};

use crate::admin::{AdminState, Readiness};
use crate::fronts::envoy::service::CallContext;
use crate::listen::Connection;

#[tonic::async_trait]
impl Health for CallContext {
    type WatchStream = HealthWatch;

    async fn check(&self, call: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        let service = call.into_inner().service;
        if !is_known(&service) {
            return Err(Status::not_found(format!("there is no service {}", service.escape_default())));
        }
        Ok(Response::new(response(serving(self.admin.readiness()))))
    }

    async fn watch(&self, call: Request<HealthCheckRequest>) -> Result<Response<HealthWatch>, Status> {
        Ok(Response::new(HealthWatch {
            admin: Arc::clone(&self.admin),
            connection: Arc::clone(&self.connection),
            is_known: is_known(&call.into_inner().service),
            sent: None,
            looks: interval(LOOK_EVERY),
        }))
    }
}

/// The status now, and each one that follows. It ends when the gateway drains or its listener is removed, so that nothing waits
/// for it.
#[derive(Debug)]
pub(super) struct HealthWatch {
    admin: Arc<AdminState>,
    connection: Arc<Connection>,
    is_known: bool,
    sent: Option<ServingStatus>,
    looks: Interval,
}

impl Stream for HealthWatch {
    type Item = Result<HealthCheckResponse, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            ready!(this.looks.poll_tick(cx));
            let readiness = this.admin.readiness();
            let status = if this.is_known { serving(readiness) } else { ServingStatus::ServiceUnknown };
            if this.sent != Some(status) {
                this.sent = Some(status);
                return Poll::Ready(Some(Ok(response(status))));
            }
            if readiness == Readiness::Draining || this.connection.is_retiring() {
                return Poll::Ready(None);
            }
        }
    }
}

fn serving(readiness: Readiness) -> ServingStatus {
    match readiness {
        Readiness::Ready => ServingStatus::Serving,
        Readiness::Draining | Readiness::StoreAway => ServingStatus::NotServing,
    }
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}

/// The empty name stands for the whole server.
fn is_known(service: &str) -> bool {
    let services = [
        "",
        authorization_server::SERVICE_NAME,
        external_processor_server::SERVICE_NAME,
        rate_limit_service_server::SERVICE_NAME,
        health_server::SERVICE_NAME,
    ];
    services.contains(&service)
}

/// A changed status is sent after at most this time.
const LOOK_EVERY: Duration = Duration::from_secs(1);
