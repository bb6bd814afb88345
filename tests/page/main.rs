//! The dashboard in a real browser.

mod browser;
mod changes;
mod driver;
mod reads;
mod recovery;
mod session;
mod shape;
mod site;

#[path = "../support/mod.rs"]
pub mod support;
