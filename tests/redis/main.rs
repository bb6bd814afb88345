//! How Redis is reached and watched: real servers that fail in every way there is, and what a caller saw meanwhile.

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
