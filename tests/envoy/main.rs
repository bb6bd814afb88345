//! The real Envoy, which asks the real gateway, with the ready files of `config/with`; and hostile callers.

mod advice;
mod authorization;
mod call;
mod common;
mod descriptors;
mod hanging;
mod health;
mod hostile;
mod mistakes;
mod processing;
mod rig;

#[path = "../support/mod.rs"]
pub mod support;
