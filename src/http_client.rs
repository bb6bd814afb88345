//! The HTTP client for requests of the gateway itself: health checks, webhooks, and commands to the admin API.
//!
//! It is hyper's. It follows no redirect, asks no proxy, and uses each connection for one request.

use std::error::Error;

use bytes::Bytes;
use http_body_util::Full;
use hyper_util::client::legacy;
use hyper_util::client::legacy::Builder;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// Connects with `C`.
pub type Client<C> = legacy::Client<C, Full<Bytes>>;

/// Connections that are dropped after one request.
pub fn builder() -> Builder {
    let mut builder = legacy::Client::builder(TokioExecutor::new());
    builder.pool_max_idle_per_host(0);
    builder
}

/// Looks up the name in a URL, and connects to its addresses until one answers.
pub fn tcp() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector
}

/// The innermost error: libraries name their part in it, the reason stands below.
pub fn root_cause<'a>(mut error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    while let Some(source) = error.source() {
        error = source;
    }
    error
}
