//! What every call of Envoy needs.

use std::sync::Arc;

use tonic::Status;

use super::description::BadDescription;
use crate::admin::AdminState;
use crate::fronts::Complaints;
use crate::gateway::CallFault;
use crate::gateway::Gateway;
use crate::gateway::Snapshot;
use crate::listen::Connection;

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
        self.complaints.bad_description(self.connection.peer.ip(), bad.part(), &bad, self.gateway.now());
        self.fault.set(&bad);
        Status::invalid_argument(bad.to_string())
    }
}
