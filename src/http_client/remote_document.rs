//! Fetches a document, within bounds.

use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::StatusCode;
use http::header::ACCEPT;
use http::header::CONNECTION;
use http::header::USER_AGENT;
use http_body_util::BodyExt;
use http_body_util::Full;
use http_body_util::LengthLimitError;
use http_body_util::Limited;
use rustls::RootCertStore;
use tokio::time::timeout;

use super::DocumentUrl;
use super::HttpsClient;
use super::root_cause;
use super::verifying;
use crate::tls::CaCertificates;
use crate::tls::client::NoSystemRoots;
use crate::tls::client::system_roots;

/// A document of another server: where it is, and how that server is verified.
#[derive(Clone, Debug)]
pub struct RemoteDocument {
    pub url: DocumentUrl,
    /// `None`: the system's certificates.
    ca: Option<CaCertificates>,
    client: Arc<OnceLock<HttpsClient>>,
}

/// Why there is no document.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("{0}")]
    NoSystemRoots(#[from] NoSystemRoots),
    #[error("{0}")]
    Unreachable(String),
    #[error("it was not answered within {} s", TIMEOUT.as_secs())]
    Timeout,
    /// Redirections are not followed: they could lead to where no operator has pointed.
    #[error("it was answered with {0}")]
    Status(StatusCode),
    #[error("it is longer than {} KiB", .0 >> 10)]
    TooLong(usize),
}

/// From the name lookup to the last byte.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A longer head of an answer is an error.
const MAX_HEAD: usize = 16 * 1024;

impl RemoteDocument {
    pub fn new(url: DocumentUrl, ca: Option<CaCertificates>) -> Self {
        Self { url, ca, client: Arc::default() }
    }

    /// Fetches the document, of at most `most` bytes. `kind` is its media type.
    pub async fn fetch(&self, kind: &'static str, most: usize) -> Result<Bytes, FetchError> {
        timeout(TIMEOUT, self.fetch_at_leisure(kind, most)).await.unwrap_or(Err(FetchError::Timeout))
    }

    async fn fetch_at_leisure(&self, kind: &'static str, most: usize) -> Result<Bytes, FetchError> {
        let request = Request::get(self.url.uri())
            .header(ACCEPT, kind)
            .header(USER_AGENT, concat!("portcullis/", env!("CARGO_PKG_VERSION")))
            .header(CONNECTION, "close")
            .body(Full::default())
            .map_err(|error| FetchError::Unreachable(error.to_string()))?;
        let answer = self.client()?.request(request).await;
        let answer = answer.map_err(|error| FetchError::Unreachable(root_cause(&error).to_string()))?;
        if answer.status() != StatusCode::OK {
            return Err(FetchError::Status(answer.status()));
        }
        match Limited::new(answer.into_body(), most).collect().await {
            Ok(body) => Ok(body.to_bytes()),
            Err(error) if error.is::<LengthLimitError>() => Err(FetchError::TooLong(most)),
            Err(error) => Err(FetchError::Unreachable(root_cause(&*error).to_string())),
        }
    }

    /// Made at the first request, because reading the system's certificates takes a while.
    fn client(&self) -> Result<&HttpsClient, NoSystemRoots> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let roots = match &self.ca {
            Some(ca) => ca.roots(),
            None if self.url.is_https() => system_roots()?,
            // Nothing is verified over plain http.
            None => RootCertStore::empty(),
        };
        Ok(self.client.get_or_init(|| verifying(roots, MAX_HEAD)))
    }
}

impl Eq for RemoteDocument {}

impl PartialEq for RemoteDocument {
    fn eq(&self, other: &Self) -> bool {
        (&self.url, &self.ca) == (&other.url, &other.ca)
    }
}
