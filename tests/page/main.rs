//! The dashboard in a real browser.

mod attack;
mod browser;
mod changes;
mod contrast;
mod driver;
mod filter;
mod fleet;
mod gateways;
mod loading;
mod night;
mod operator;
mod reads;
mod recovery;
mod reload;
mod session;
mod shape;
mod site;

#[path = "../support/mod.rs"]
pub mod support;
