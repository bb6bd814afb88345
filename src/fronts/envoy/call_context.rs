//! What every call of Envoy needs.

use std::net::IpAddr;
use std::sync::Arc;

use http::StatusCode;
use tonic::Code;
use tonic::Status;

use super::description::BadDescription;
use super::description::Description;
use crate::admin::AdminState;
use crate::client::ClientIp;
use crate::client::Identity;
use crate::decision::descriptors::InvalidCall;
use crate::fronts::Complaints;
use crate::gateway::CallFault;
use crate::gateway::Gateway;
use crate::gateway::Snapshot;
use crate::listen::Connection;
use crate::listen::RefusedHead;

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

    /// Logs and records a call of which a message cannot be read, or that calls no method.
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
            // Of a method that the service does not have.
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

    /// Of a call that tells no other client.
    fn asker_as_client(&self) -> Identity {
        let peer = ClientIp::new(self.asker());
        Identity { peer, peer_is_trusted: false, client: peer }
    }

    fn record(&self, identity: Identity, scheme: &'static str, shown: &RefusedHead, reason: &str) {
        self.gateway.record_undescribed(&self.live, identity, scheme, shown, reason);
    }
}
