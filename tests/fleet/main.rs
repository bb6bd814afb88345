//! A fleet under partition: three gateways and a Redis Cluster of three masters and three replicas, each in a container
//! of its own on a private network, whose links are cut, slowed down and made lossy under load.
//!
//! `cargo test --test fleet -- --nocapture` prints the table of docs/src/redis.md. It takes about three minutes, and needs a
//! Docker engine; no image is fetched, for the containers see what is installed on this machine.

mod containers;
mod load;
mod network_faults;
mod outages;
mod site;

#[path = "../support/mod.rs"]
pub mod support;
