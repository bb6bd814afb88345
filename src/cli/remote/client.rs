//! Sends requests to the admin API of a running gateway.

use std::borrow::Cow;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::ControlFlow;
use std::time::Duration;

use anyhow::{Context, bail};
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::response::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use serde_json::Value;
use tokio::runtime;
use tokio::time::timeout;

use crate::wire::http_client;
use crate::wire::http_client::root_cause;

/// An admin listener, and the token for it.
pub(in crate::cli) struct AdminClient {
    authority: String,
    authorization: Option<HeaderValue>,
    accept: HeaderValue,
}

/// An answer of the admin API.
#[derive(Clone, Debug)]
pub(in crate::cli) struct AdminResponse {
    pub(in crate::cli) status: StatusCode,
    /// The gateways that did not answer the one that was asked.
    pub(in crate::cli) missing: Option<String>,
    pub(in crate::cli) body: Bytes,
}

/// How a stream ended.
#[derive(Clone, Debug)]
pub(in crate::cli) enum StreamEnd {
    /// The gateway ended the stream, or the reader stopped.
    Ended,
    Refused(AdminResponse),
}

impl AdminClient {
    /// `url` is one such as `http://127.0.0.1:9090`.
    pub(in crate::cli) fn new(url: &str, token: Option<&str>) -> anyhow::Result<Self> {
        let authorization = token.map(|token| {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
                .ok()
                .context("the token is not one line of visible characters")?;
            value.set_sensitive(true);
            anyhow::Ok(value)
        });
        Ok(Self { authority: authority(url)?, authorization: authorization.transpose()?, accept: ANYTHING })
    }

    /// Asks for this media type.
    pub(in crate::cli) fn accepting(self, media_type: &'static str) -> Self {
        Self { accept: HeaderValue::from_static(media_type), ..self }
    }

    pub(in crate::cli) fn authority(&self) -> &str {
        &self.authority
    }

    pub(in crate::cli) fn has_token(&self) -> bool {
        self.authorization.is_some()
    }

    /// Sends a request for a path with its query, with `document` as its body. An error means that no whole answer
    /// came.
    pub(in crate::cli) fn ask(
        &self,
        method: Method,
        target: &str,
        document: Option<&Value>,
        limit: Duration,
    ) -> Result<AdminResponse, String> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
        let answer = runtime.block_on(async { timeout(limit, self.exchange(method, target, document)).await });
        // A name look-up that hangs in the system must not delay the exit.
        runtime.shutdown_background();
        match answer {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(format!("{error:#}")),
            Err(_) => Err(format!("no answer within {} s", limit.as_secs())),
        }
    }

    /// Reads a stream, and passes each piece to `on_piece` until that breaks. An answer without success is returned
    /// whole.
    pub(in crate::cli) fn follow(
        &self,
        target: &str,
        mut on_piece: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<StreamEnd, String> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
        let followed = runtime.block_on(async {
            let timed_out = || format!("no answer within {} s", TIMEOUT.as_secs());
            let opened = timeout(TIMEOUT, self.open(Method::GET, target, None)).await.map_err(|_| timed_out())?;
            let (parts, mut body) = opened.map_err(|error| format!("{error:#}"))?.into_parts();
            if !parts.status.is_success() {
                let whole = timeout(TIMEOUT, Limited::new(body, MAX_BODY).collect()).await;
                let body = whole.map_err(|_| timed_out())?.map_err(|error| error.to_string())?.to_bytes();
                return Ok(StreamEnd::Refused(AdminResponse::of(&parts, body)));
            }
            loop {
                match timeout(STREAM_TIMEOUT, body.frame()).await {
                    Err(_) => return Err(format!("the gateway sent nothing for {} s", STREAM_TIMEOUT.as_secs())),
                    Ok(None) => return Ok(StreamEnd::Ended),
                    Ok(Some(Err(error))) => return Err(format!("the answer broke off: {error}")),
                    Ok(Some(Ok(frame))) => {
                        if let Some(data) = frame.data_ref()
                            && on_piece(data).is_break()
                        {
                            return Ok(StreamEnd::Ended);
                        }
                    }
                }
            }
        });
        runtime.shutdown_background();
        followed
    }

    async fn exchange(&self, method: Method, target: &str, document: Option<&Value>) -> anyhow::Result<AdminResponse> {
        let (parts, body) = self.open(method, target, document).await?.into_parts();
        let body = Limited::new(body, MAX_BODY).collect().await;
        let body = body.map_err(|error| anyhow::anyhow!("the answer broke off: {error}"))?.to_bytes();
        Ok(AdminResponse::of(&parts, body))
    }

    /// Sends a request, and returns the head of the answer. The body comes later.
    async fn open(&self, method: Method, target: &str, document: Option<&Value>) -> anyhow::Result<Response<Incoming>> {
        let url = format!("http://{}{target}", reachable(&self.authority));
        let mut request =
            Request::builder().method(method).uri(url).header(HOST, &self.authority).header(ACCEPT, &self.accept);
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        if document.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let body = Full::<Bytes>::from(document.map(Value::to_string).unwrap_or_default());
        let answer = http_client::builder().build(http_client::tcp()).request(request.body(body)?).await;
        answer.map_err(|error| match root_cause(&error) {
            cause if error.is_connect() => anyhow::anyhow!("{cause}"),
            cause => anyhow::anyhow!("what answers there is not the gateway: {cause}"),
        })
    }
}

impl AdminResponse {
    fn of(parts: &Parts, body: Bytes) -> Self {
        let missing = parts.headers.get(MISSING).and_then(|ids| ids.to_str().ok()).map(str::to_owned);
        Self { status: parts.status, missing, body }
    }
}

impl fmt::Debug for AdminClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminClient").field("authority", &self.authority).finish_non_exhaustive()
    }
}

/// `host:port` out of a URL.
fn authority(url: &str) -> anyhow::Result<String> {
    let expected = || format!("`{url}` is not an admin address, write one such as http://127.0.0.1:9090");
    let uri: http::Uri = url.trim_end_matches('/').parse().with_context(expected)?;
    if uri.scheme_str().is_some_and(|scheme| scheme != "http") {
        bail!("{}", expected());
    }
    let host = uri.host().with_context(expected)?;
    Ok(format!("{host}:{}", uri.port_u16().unwrap_or(DEFAULT_PORT)))
}

/// Where to connect to. A gateway that listens on all addresses is reached on this machine.
fn reachable(authority: &str) -> Cow<'_, str> {
    match authority.parse::<SocketAddr>() {
        Ok(SocketAddr::V4(address)) if address.ip().is_unspecified() => {
            SocketAddr::from((Ipv4Addr::LOCALHOST, address.port())).to_string().into()
        }
        Ok(SocketAddr::V6(address)) if address.ip().is_unspecified() => {
            SocketAddr::from((Ipv6Addr::LOCALHOST, address.port())).to_string().into()
        }
        _ => authority.into(),
    }
}

const MISSING: HeaderName = HeaderName::from_static("x-portcullis-missing");

const ANYTHING: HeaderValue = HeaderValue::from_static("*/*");

const DEFAULT_PORT: u16 = 80;

/// A gateway that takes longer does not work.
pub(in crate::cli) const TIMEOUT: Duration = Duration::from_secs(2);

/// For requests that make the gateway ask Redis a hundred thousand times.
pub(in crate::cli) const LONG_TIMEOUT: Duration = Duration::from_secs(60);

/// Three heartbeats of a stream.
const STREAM_TIMEOUT: Duration = Duration::from_secs(45);

/// Enough for a list of all limits that can be configured.
const MAX_BODY: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_admin_address_may_leave_out_what_is_usual() {
        assert_eq!(authority("http://127.0.0.1:9090").unwrap(), "127.0.0.1:9090");
        assert_eq!(authority("http://gateway:9090/").unwrap(), "gateway:9090");
        assert_eq!(authority("http://[::1]:9090").unwrap(), "[::1]:9090");
        assert_eq!(authority("127.0.0.1:9090").unwrap(), "127.0.0.1:9090");
        assert_eq!(authority("http://gateway").unwrap(), "gateway:80");
    }

    #[test]
    fn a_text_that_is_not_an_address_is_refused() {
        for text in ["", "https://gateway:9090", "not an address"] {
            assert!(authority(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_gateway_that_listens_everywhere_is_asked_on_this_machine() {
        assert_eq!(reachable("0.0.0.0:9090"), "127.0.0.1:9090");
        assert_eq!(reachable("[::]:9090"), "[::1]:9090");
        assert_eq!(reachable("10.0.0.5:9090"), "10.0.0.5:9090");
        assert_eq!(reachable("gateway:9090"), "gateway:9090");
    }

    #[test]
    fn a_token_is_not_printed() {
        let client = AdminClient::new("http://127.0.0.1:9090", Some("s3cret")).unwrap();
        assert!(!format!("{client:?}").contains("s3cret"));
        assert!(AdminClient::new("http://127.0.0.1:9090", Some("two\nlines")).is_err());
    }
}
