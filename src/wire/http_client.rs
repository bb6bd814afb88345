//! The HTTP client for requests of the gateway itself: health checks, webhooks, documents that it fetches, and commands to the
//! admin API.
//!
//! It is hyper's. It follows no redirect, asks no proxy, and uses each connection for one request.

use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONNECTION, USER_AGENT};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::Builder;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::RootCertStore;
use tokio::time::timeout;

use crate::wire::tls::{CaCertificates, NoSystemRoots, client_config, system_roots};
use crate::words::word::Help;

// Clients, each for one purpose.

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

// The URL of a document that the gateway fetches.

/// An https URL, or an http URL of this machine: an attacker who can change a document in transit could change
/// decisions.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DocumentUrl(Uri);

/// Why a text is not such a URL. Never shows the text itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidDocumentUrl {
    #[error("this is no https:// URL")]
    NotHttps,
    #[error("what comes over http from another machine can be changed on its way")]
    PlainHttp,
    #[error("a URL here has no user name or password")]
    Credentials,
    #[error("a URL here has no fragment")]
    Fragment,
}

impl Help for InvalidDocumentUrl {
    fn help(&self) -> String {
        let help = match self {
            Self::NotHttps => "write one such as `https://id.example.com/.well-known/jwks.json`",
            Self::PlainHttp => "write `https://`; plain http only reaches `127.0.0.1`, `[::1]` and `localhost`",
            Self::Credentials => "remove the part before the `@`",
            Self::Fragment => "remove what stands behind the `#`",
        };
        help.to_owned()
    }
}

impl DocumentUrl {
    pub fn parse(text: &str) -> Result<Self, InvalidDocumentUrl> {
        let text = text.trim();
        if text.contains('#') {
            return Err(InvalidDocumentUrl::Fragment);
        }
        let uri = text.parse::<Uri>().map_err(|_| InvalidDocumentUrl::NotHttps)?;
        let authority = uri.authority().map(http::uri::Authority::as_str).unwrap_or_default();
        if authority.contains('@') {
            return Err(InvalidDocumentUrl::Credentials);
        }
        let host = uri.host().filter(|host| !host.is_empty() && !authority.ends_with(':'));
        match (uri.scheme_str(), host) {
            (Some("https"), Some(_)) => Ok(Self(uri)),
            (Some("http"), Some(host)) if is_this_machine(host) => Ok(Self(uri)),
            (Some("http"), Some(_)) => Err(InvalidDocumentUrl::PlainHttp),
            _ => Err(InvalidDocumentUrl::NotHttps),
        }
    }

    pub fn is_https(&self) -> bool {
        self.0.scheme_str() == Some("https")
    }

    pub(super) fn uri(&self) -> &Uri {
        &self.0
    }
}

fn is_this_machine(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl fmt::Display for DocumentUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// Fetches a document, within bounds.

/// From the name lookup to the last byte.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A longer head of an answer is an error.
const MAX_HEAD: usize = 16 * 1024;

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

impl RemoteDocument {
    pub fn new(url: DocumentUrl, ca: Option<CaCertificates>) -> Self {
        Self { url, ca, client: Arc::default() }
    }

    /// Fetches the document, of at most `most` bytes. `kind` is its media type.
    pub async fn fetch(&self, kind: &'static str, most: usize) -> Result<Bytes, FetchError> {
        timeout(TIMEOUT, self.fetch_without_timeout(kind, most)).await.unwrap_or(Err(FetchError::Timeout))
    }

    async fn fetch_without_timeout(&self, kind: &'static str, most: usize) -> Result<Bytes, FetchError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_comes_over_https_or_from_this_machine() {
        for text in [
            "https://id.example.com/.well-known/jwks.json",
            " https://id.example.com:8443/keys?p=policy ",
            "https://192.0.2.1/",
            "http://localhost:8080/keys",
            "http://127.8.8.8/keys",
            "http://[::1]:80/keys",
        ] {
            assert_eq!(DocumentUrl::parse(text).unwrap().to_string(), text.trim());
        }
        for text in
            ["http://192.0.2.1/", "http://id.example.com/", "http://localhost.example.com/", "http://[2001:db8::1]/"]
        {
            assert_eq!(DocumentUrl::parse(text), Err(InvalidDocumentUrl::PlainHttp), "{text}");
        }
        for text in ["", "keys.json", "/keys", "ftp://h/", "file:///keys", "https://", "https://h:/", "https:keys"] {
            assert_eq!(DocumentUrl::parse(text), Err(InvalidDocumentUrl::NotHttps), "{text}");
        }
        assert_eq!(DocumentUrl::parse("https://u:p@h/"), Err(InvalidDocumentUrl::Credentials));
        assert_eq!(DocumentUrl::parse("http://127.0.0.1@h/"), Err(InvalidDocumentUrl::Credentials));
        assert_eq!(DocumentUrl::parse("https://h/#keys"), Err(InvalidDocumentUrl::Fragment));
    }
}
