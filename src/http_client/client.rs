//! Clients, each for one purpose.

use std::error::Error;

use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::HttpsConnector;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy;
use hyper_util::client::legacy::Builder;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::RootCertStore;

use crate::tls::client::client_config;

/// Connects with `C`.
pub type Client<C> = legacy::Client<C, Full<Bytes>>;

/// Connects to http and https URLs.
pub type HttpsClient = Client<HttpsConnector<HttpConnector>>;

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

/// Verifies servers by these authorities. A head of an answer longer than `max_head` is an error.
pub fn verifying(roots: RootCertStore, max_head: usize) -> HttpsClient {
    let mut tcp = tcp();
    tcp.enforce_http(false);
    let connector = HttpsConnectorBuilder::new().with_tls_config(client_config(roots));
    let connector = connector.https_or_http().enable_http1().wrap_connector(tcp);
    builder().http1_max_buf_size(max_head).build(connector)
}

/// The innermost error: libraries name their part in it, the reason stands below.
pub fn root_cause<'a>(mut error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    while let Some(source) = error.source() {
        error = source;
    }
    error
}
