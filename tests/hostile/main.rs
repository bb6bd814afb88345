//! Hostile bytes from clients and from applications: what the other side gets, byte by byte.

mod answers;
mod conformance;
mod differential;
mod frames;
mod http2;
mod mutations;
mod requests;
mod strict;
mod table;
mod watched;

#[path = "../support/mod.rs"]
pub mod support;
