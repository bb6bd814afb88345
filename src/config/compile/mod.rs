//! Compiles the document to settings. Every check that needs more than one value is here; all mistakes are collected.

mod availability;
mod client;
mod document;
mod domains;
mod key;
mod limits;
mod listen;
mod lists;
mod names;
mod outcome;
mod record;
mod routes;
mod rule;
mod server;
mod store;
mod then;
mod upstreams;
mod warnings;

pub use self::document::compile;
