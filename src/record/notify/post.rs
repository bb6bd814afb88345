//! Sends one notification to one webhook, over a connection of its own.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::StatusCode;
use http::header::CONNECTION;
use http::header::CONTENT_TYPE;
use http::header::HOST;
use http::header::USER_AGENT;
use http_body_util::Full;
use tokio::time::timeout;

use super::Webhook;
use crate::record::outgoing;
use crate::record::outgoing::SendError;

/// Why a notification was not delivered. Does not show the secret URL.
#[derive(Debug, thiserror::Error)]
pub(super) enum DeliveryError {
    #[error("the webhook answered {0}")]
    Status(StatusCode),
    #[error("the webhook did not answer within {} s", TIMEOUT.as_secs())]
    Timeout,
    #[error("{0}")]
    Request(#[from] http::Error),
    #[error("{0}")]
    Send(#[from] SendError),
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
    Ok(outgoing::send(request).await?.status())
}
