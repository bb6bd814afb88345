//! The gateway's own answers: denials in their configured form, and errors.

pub mod accept;
pub mod challenge_page;
pub mod grpc;
pub mod page;
pub mod preference;
pub mod problem;
pub mod ratelimit_headers;
pub mod refusal;
pub mod reply;
