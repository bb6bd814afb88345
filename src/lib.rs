//! portcullis stands in front of web applications and decides, before they spend anything on a request,
//! whether it may pass.
//!
//! The modules are listed in reading order, which is also the order in which they may import each other:
//! a module uses only modules above it.

pub mod clock;
pub mod units;

pub mod client;
pub mod request;

pub mod key;
pub mod limit;
pub mod list;
pub mod route;

pub mod decision;

pub mod listen;
pub mod record;
pub mod store;
pub mod upstream;

pub mod admin;
pub mod gateway;

pub mod config;

pub mod app;

pub mod cli;
