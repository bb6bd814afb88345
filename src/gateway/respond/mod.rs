//! Answers of our own: denials, as their configuration wants them to look, and what failed.

pub mod accept;
pub mod challenge_page;
pub mod grpc;
pub mod page;
pub mod preference;
pub mod problem;
pub mod ratelimit_headers;
pub mod refusal;
pub mod reply;
