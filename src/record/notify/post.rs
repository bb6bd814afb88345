//! Sends one notification to one webhook, over a connection of its own.

use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::StatusCode;
use http::header::CONNECTION;
use http::header::CONTENT_TYPE;
use http::header::HOST;
use http::header::USER_AGENT;
use http_body_util::Full;
use hyper_rustls::HttpsConnector;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use tokio::time::timeout;

use super::Webhook;
use crate::http_client;
use crate::http_client::Client;
use crate::http_client::root_cause;
use crate::tls::client::NoSystemRoots;
use crate::tls::client::client_config;
use crate::tls::client::system_roots;

/// Why a notification was not delivered. Does not show the secret URL.
#[derive(Debug, thiserror::Error)]
pub(super) enum DeliveryError {
    #[error("the webhook answered {0}")]
    Status(StatusCode),
    #[error("the webhook did not answer within {} s", TIMEOUT.as_secs())]
    Timeout,
    #[error("{0}")]
    NoSystemRoots(#[from] NoSystemRoots),
    #[error("{0}")]
    Request(#[from] http::Error),
    #[error("{}", root_cause(.0))]
    Client(#[from] legacy::Error),
}

/// From the name lookup to the head of the answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Sends `json`. Only a success status means that it was delivered. Redirections are not followed.
pub(super) async fn post(webhook: &Webhook, json: Bytes) -> Result<(), DeliveryError> {
    let status = timeout(TIMEOUT, exchange(webhook, json)).await.map_err(|_| DeliveryError::Timeout)??;
    if status.is_success() { Ok(()) } else { Err(DeliveryError::Status(status)) }
}

async fn exchange(webhook: &Webhook, json: Bytes) -> Result<StatusCode, DeliveryError> {
    let request = Request::post(webhook.url())
        .header(HOST, webhook.authority())
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, concat!("portcullis/", env!("CARGO_PKG_VERSION")))
        .header(CONNECTION, "close")
        .body(Full::new(json))?;
    // The body of the answer is not read.
    let answered = if webhook.is_https() {
        https()?.request(request).await
    } else {
        http_client::builder().http1_max_buf_size(MAX_HEAD).build(http_client::tcp()).request(request).await
    };
    Ok(answered?.status())
}

/// Verifies webhooks with the system's certificates, which are read once.
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
