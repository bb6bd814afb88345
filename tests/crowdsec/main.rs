//! A real `CrowdSec` engine beside the gateway, and hostile answers in its place.

mod engine;
mod followed;
mod hostile;
mod reported;
mod site;

#[path = "../support/mod.rs"]
pub mod support;
