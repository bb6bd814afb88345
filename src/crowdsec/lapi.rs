//! Requests to a Local API, each over a connection of its own.

use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use http::Method;
use http::Request;
use http::Response;
use http::StatusCode;
use http::header::ACCEPT;
use http::header::CONNECTION;
use http::header::CONTENT_TYPE;
use http::header::USER_AGENT;
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::time::timeout;

use super::LapiUrl;
use crate::http_client::HttpsClient;
use crate::http_client::root_cause;
use crate::http_client::verifying;
use crate::tls::CaCertificates;
use crate::tls::client::NoSystemRoots;
use crate::tls::client::system_roots;

/// A Local API: where it listens, and how it is verified.
#[derive(Clone, Debug)]
pub struct Lapi {
    pub url: LapiUrl,
    /// `None`: the system's certificates.
    pub ca: Option<CaCertificates>,
    client: Arc<OnceLock<HttpsClient>>,
}

/// Why a request to a Local API failed. Never shows a key or a password.
#[derive(Debug, thiserror::Error)]
pub enum LapiError {
    #[error("{0}")]
    NoSystemRoots(#[from] NoSystemRoots),
    #[error("{0}")]
    Unreachable(String),
    #[error("it did not answer within {} s", .0.as_secs())]
    Timeout(Duration),
    /// It does not know the key, or the password.
    #[error("it refuses the credentials ({0})")]
    Refused(StatusCode),
    #[error("it answered {0}")]
    Status(StatusCode),
    #[error("its answer cannot be read: {0}")]
    Malformed(String),
}

/// From the name lookup to the head of the answer.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// A longer head of an answer is an error.
const MAX_HEAD: usize = 16 * 1024;

impl Lapi {
    pub fn new(url: LapiUrl, ca: Option<CaCertificates>) -> Self {
        Self { url, ca, client: Arc::default() }
    }

    /// Sends a request to a path that begins with `/v1/`, with a header field that proves who asks. Redirections are not
    /// followed.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        credentials: Option<(&'static str, HeaderValue)>,
        json: Bytes,
    ) -> Result<Response<Incoming>, LapiError> {
        let mut request = Request::builder()
            .method(method)
            .uri(self.url.at(path))
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, concat!("portcullis/", env!("CARGO_PKG_VERSION")))
            .header(CONNECTION, "close");
        if let Some((name, value)) = credentials {
            request = request.header(name, value);
        }
        if !json.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request = request.body(Full::new(json)).map_err(|error| LapiError::Unreachable(error.to_string()))?;
        let exchange = self.client()?.request(request);
        let answer = timeout(HEAD_TIMEOUT, exchange).await.map_err(|_| LapiError::Timeout(HEAD_TIMEOUT))?;
        let answer = answer.map_err(|error| LapiError::Unreachable(root_cause(&error).to_string()))?;
        match answer.status() {
            status if status.is_success() => Ok(answer),
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => Err(LapiError::Refused(status)),
            status => Err(LapiError::Status(status)),
        }
    }

    /// Made at the first request, because reading the system's certificates takes a while.
    fn client(&self) -> Result<&HttpsClient, NoSystemRoots> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let roots = match &self.ca {
            Some(ca) => ca.roots(),
            None if self.url.as_str().starts_with("https:") => system_roots()?,
            // Nothing is verified over plain http.
            None => rustls::RootCertStore::empty(),
        };
        Ok(self.client.get_or_init(|| verifying(roots, MAX_HEAD)))
    }
}

impl Eq for Lapi {}

impl PartialEq for Lapi {
    fn eq(&self, other: &Self) -> bool {
        (&self.url, &self.ca) == (&other.url, &other.ca)
    }
}
