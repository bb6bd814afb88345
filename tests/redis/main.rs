//! The connection to Redis and its monitor: real servers that fail in every way, and what callers get meanwhile.

mod cluster;
mod faults;
mod keyring;
mod measure;
mod outages;
mod outcomes;
mod reach;
mod sentinel;
mod steady;
mod tls;

#[path = "../support/mod.rs"]
pub mod support;
