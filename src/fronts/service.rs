//! Chooses the front of a request: the gateway, which forwards, or one that answers a proxy.

use std::sync::Arc;

use super::Complaints;
use super::envoy;
use super::forward_auth;
use crate::admin::AdminState;
use crate::gateway::Gateway;
use crate::gateway::PooledFuture;
use crate::gateway::ResponseBody;
use crate::listen::Connection;
use crate::listen::IncomingRequest;
use crate::listen::InterimSender;
use crate::listen::Refusal;
use crate::listen::RefusedHead;
use crate::listen::RequestHandler;
use crate::listen::Response;

/// Handles the requests of one worker, on every listener. Clones share its state.
#[derive(Clone, Debug)]
pub struct Fronts {
    gateway: Gateway,
    complaints: Complaints,
    admin: Arc<AdminState>,
}

impl Fronts {
    /// All workers share `complaints` and `admin`, which knows whether the gateway is ready.
    pub fn new(gateway: Gateway, complaints: Complaints, admin: Arc<AdminState>) -> Self {
        Self { gateway, complaints, admin }
    }

    /// Waits briefly for what outlives its request. Called after the worker's last request.
    pub async fn finish(&self) {
        self.gateway.finish().await;
    }
}

impl RequestHandler for Fronts {
    type Body = ResponseBody;

    fn handle(
        &self,
        connection: Arc<Connection>,
        request: IncomingRequest,
        interim: InterimSender,
    ) -> impl Future<Output = Response<ResponseBody>> + Send + Unpin + 'static {
        let Some(askers) = &connection.askers else { return self.gateway.handle(connection, request, interim) };
        let (askers, Self { gateway, complaints, admin }) = (Arc::clone(askers), self.clone());
        if envoy::is_call(&request.head) {
            return PooledFuture::new(envoy::answer_call(gateway, complaints, admin, connection, request));
        }
        PooledFuture::new(forward_auth::answer_question(gateway, complaints, askers, connection, request, interim))
    }

    fn refuse(&self, connection: &Connection, refused: RefusedHead) -> Refusal {
        self.gateway.refuse(connection, &refused)
    }
}
