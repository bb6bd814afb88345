//! The real binary over real sockets, one module for each group of promises.

mod access;
mod admin;
mod admin_api;
mod algorithms;
mod audit;
mod bans;
mod bodies;
mod challenge;
mod deny_page;
mod descriptors;
mod devices;
mod drain;
mod events;
mod flags;
mod forwarding;
mod framing;
mod held_many;
mod holds;
mod http2;
mod http2_abuse;
mod identity;
mod limits;
mod log_lines;
mod notify;
mod outcome;
mod outcome_kept;
mod outcome_settled;
mod proxy_protocol;
mod ratelimit_headers;
mod redis_store;
mod reload;
mod retries;
mod routing;
mod selectors;
mod servers;
mod service_manager;
mod spelling;
mod streaming;
mod takeover;
mod timeouts;
mod upgrade;
mod upstream_http2;
mod upstream_tls;

#[path = "../support/mod.rs"]
pub mod support;
