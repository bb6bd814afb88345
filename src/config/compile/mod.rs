//! Compiles the document to settings. Every check that needs more than one value is here; all mistakes are collected.

mod admin;
mod audit;
mod availability;
mod channels;
mod client;
mod compiler;
mod crowdsec;
mod default_names;
mod deny_response;
mod document;
mod domains;
mod example_outcomes;
mod files;
mod jwt;
mod key;
mod limit_context;
mod limits;
mod listen;
mod lists;
mod names;
mod outcome;
mod route_match;
mod routes;
mod rule;
mod server;
mod server_url;
mod sessions;
mod store;
mod then;
mod tls;
mod tracing;
mod upstreams;
mod warnings;

pub use self::document::compile;
