//! Requests to webhooks and to the collector of spans, each over a connection of its own.

use std::sync::OnceLock;

use bytes::Bytes;
use http::Request;
use http::Response;
use http::uri::Scheme;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;

use crate::http_client;
use crate::http_client::Client;
use crate::http_client::root_cause;
use crate::tls::client::NoSystemRoots;
use crate::tls::client::client_config;
use crate::tls::client::system_roots;

/// Why there was no answer. Does not show the URL.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    #[error("{0}")]
    NoSystemRoots(#[from] NoSystemRoots),
    #[error("{}", root_cause(.0))]
    Client(#[from] legacy::Error),
}

/// Sends a request whose target is an absolute URL. Redirections are not followed. The caller bounds the time.
pub(super) async fn send(request: Request<Full<Bytes>>) -> Result<Response<Incoming>, SendError> {
    Ok(if request.uri().scheme() == Some(&Scheme::HTTPS) {
        https()?.request(request).await?
    } else {
        http_client::builder().http1_max_buf_size(MAX_HEAD).build(http_client::tcp()).request(request).await?
    })
}

/// Verifies servers with the system's certificates, which are read once.
fn https() -> Result<&'static Client<HttpsConnector<HttpConnector>>, NoSystemRoots> {
    static CLIENT: OnceLock<Client<HttpsConnector<HttpConnector>>> = OnceLock::new();
    if let Some(client) = CLIENT.get() {
        return Ok(client);
    }
    let mut tcp = http_client::tcp();
    tcp.enforce_http(false);
    let connector = HttpsConnectorBuilder::new().with_tls_config(client_config(system_roots()?));
    let connector = connector.https_only().enable_http1().wrap_connector(tcp);
    Ok(CLIENT.get_or_init(|| http_client::builder().http1_max_buf_size(MAX_HEAD).build(connector)))
}

/// A longer head of an answer is an error.
const MAX_HEAD: usize = 16 * 1024;
