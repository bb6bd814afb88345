//! The dashboard in a real browser.

mod attack;
mod browser;
mod changes;
mod driver;
mod fleet;
mod gateways;
mod loading;
mod operator;
mod reads;
mod recovery;
mod reload;
mod session;
mod shape;
mod site;

#[path = "../support/mod.rs"]
pub mod support;
