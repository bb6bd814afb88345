//! Answers Envoy over gRPC, on the same HTTP/2 as every other request.
//!
//! [`service`] chooses the service of a call; [`CallContext`](call_context::CallContext) implements each. Envoy describes a
//! request in messages ([`description`]), and the gateway judges it ([`judge`]) like one that arrived.

mod call;
mod call_body;
mod call_context;
mod check;
mod description;
mod header_values;
mod health;
mod judge;
mod message_progress;
mod process;
mod rate_limit;
mod request_changes;
mod service;

pub(super) use self::service::answer_call;
pub(super) use self::service::is_call;
