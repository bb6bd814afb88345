//! Answers Envoy over gRPC, on the same HTTP/2 as every other request.
//!
//! [`service`] chooses the service of a call; [`CallContext`](service::CallContext) implements each. Envoy describes a
//! request in messages ([`description`]), and the gateway judges it ([`judge`](service::judge())) like one that arrived.

mod call;
mod check;
mod description;
mod health;
mod process;
mod rate_limit;
mod service;

pub(super) use self::service::{answer_call, is_call};
