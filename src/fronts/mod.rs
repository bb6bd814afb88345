//! Answers proxies that ask for decisions, and forward their requests themselves.
//!
//! A front makes the head and the client of a request from what it was told, has it judged
//! like one that arrived ([`judge`](crate::gateway::judge())), and gives the decision back in its own protocol. It has no rules and no records of its own.

mod complaints;
pub mod envoy;
pub mod forward_auth;
mod service;

pub use self::complaints::Complaints;
pub use self::service::Fronts;
