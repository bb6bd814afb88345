//! How the exporter reaches the collector: with the client that webhooks use.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::Request;
use http::Response;
use http_body_util::BodyExt;
use http_body_util::Full;
use http_body_util::Limited;
use opentelemetry_http::HttpClient;
use opentelemetry_http::HttpError;
use tokio::time::timeout;

use crate::record::outgoing;

#[derive(Debug)]
pub(super) struct CollectorClient;

/// From the name lookup to the end of the answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The answer says which spans were refused, in a few words.
const MAX_ANSWER: usize = 16 * 1024;

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let exchange = async {
            let (head, body) = outgoing::send(request.map(Full::new)).await?.into_parts();
            let body = Limited::new(body, MAX_ANSWER).collect().await?.to_bytes();
            Ok(Response::from_parts(head, body))
        };
        timeout(TIMEOUT, exchange).await.map_err(|_| "the collector did not answer within 5 s")?
    }
}
