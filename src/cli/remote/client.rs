//! One request to an admin listener, and its answer.

use std::borrow::Cow;
use std::fmt;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::time::Duration;

use anyhow::Context;
use anyhow::bail;
use bytes::Bytes;
use http::HeaderValue;
use http::Method;
use http::Request;
use http::Response;
use http::StatusCode;
use http::header::AUTHORIZATION;
use http::header::CONTENT_TYPE;
use http::header::HOST;
use http_body_util::BodyExt;
use http_body_util::Full;
use http_body_util::Limited;
use hyper::body::Incoming;
use serde_json::Value;
use tokio::runtime;
use tokio::time::timeout;

use crate::http_client;
use crate::http_client::root_cause;

/// An admin listener, and the token that it is shown.
pub(in crate::cli) struct Client {
    authority: String,
    authorization: Option<HeaderValue>,
}

/// What it said.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Answer {
    pub(in crate::cli) status: StatusCode,
    pub(in crate::cli) body: Bytes,
}

/// How following ended.
#[derive(Clone, Debug)]
pub(in crate::cli) enum Followed {
    /// The gateway has no more to say, or nobody wants to hear more.
    ToTheEnd,
    Refused(Answer),
}

impl Client {
    /// `url` is such as `http://127.0.0.1:9090`.
    pub(in crate::cli) fn new(url: &str, token: Option<&str>) -> anyhow::Result<Self> {
        let authorization = token.map(|token| {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
                .ok()
                .context("the token holds something else than one line of visible characters")?;
            value.set_sensitive(true);
            anyhow::Ok(value)
        });
        Ok(Self { authority: authority(url)?, authorization: authorization.transpose()? })
    }

    pub(in crate::cli) fn authority(&self) -> &str {
        &self.authority
    }

    pub(in crate::cli) fn has_token(&self) -> bool {
        self.authorization.is_some()
    }

    /// Asks for a path with its query, and brings a document where there is one. An error means that no whole answer came.
    pub(in crate::cli) fn ask(
        &self,
        method: Method,
        target: &str,
        document: Option<&Value>,
        patience: Duration,
    ) -> Result<Answer, String> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
        let answer = runtime.block_on(async { timeout(patience, self.exchange(method, target, document)).await });
        // A name look-up that hangs in the system does not hold up the exit.
        runtime.shutdown_background();
        match answer {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(format!("{error:#}")),
            Err(_) => Err(format!("no answer within {} s", patience.as_secs())),
        }
    }

    /// Asks for what does not end by itself, and hands on each piece of it as it comes, until `told` wants no more. An
    /// answer without success is handed back whole.
    pub(in crate::cli) fn follow(
        &self,
        target: &str,
        mut told: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<Followed, String> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
        let followed = runtime.block_on(async {
            let silent = || format!("no answer within {} s", PATIENCE.as_secs());
            let opened = timeout(PATIENCE, self.open(Method::GET, target, None)).await.map_err(|_| silent())?;
            let (parts, mut body) = opened.map_err(|error| format!("{error:#}"))?.into_parts();
            if !parts.status.is_success() {
                let whole = timeout(PATIENCE, Limited::new(body, LARGEST_ANSWER).collect()).await;
                let body = whole.map_err(|_| silent())?.map_err(|error| error.to_string())?.to_bytes();
                return Ok(Followed::Refused(Answer { status: parts.status, body }));
            }
            loop {
                match timeout(SILENCE, body.frame()).await {
                    Err(_) => return Err(format!("nothing was heard for {} s", SILENCE.as_secs())),
                    Ok(None) => return Ok(Followed::ToTheEnd),
                    Ok(Some(Err(error))) => return Err(format!("the answer broke off: {error}")),
                    Ok(Some(Ok(frame))) => {
                        if let Some(data) = frame.data_ref()
                            && told(data).is_break()
                        {
                            return Ok(Followed::ToTheEnd);
                        }
                    }
                }
            }
        });
        runtime.shutdown_background();
        followed
    }

    async fn exchange(&self, method: Method, target: &str, document: Option<&Value>) -> anyhow::Result<Answer> {
        let (parts, body) = self.open(method, target, document).await?.into_parts();
        let body = Limited::new(body, LARGEST_ANSWER).collect().await;
        let body = body.map_err(|error| anyhow::anyhow!("the answer broke off: {error}"))?.to_bytes();
        Ok(Answer { status: parts.status, body })
    }

    /// Sends a request, and returns the head of the answer. The body comes later.
    async fn open(&self, method: Method, target: &str, document: Option<&Value>) -> anyhow::Result<Response<Incoming>> {
        let url = format!("http://{}{target}", reachable(&self.authority));
        let mut request = Request::builder().method(method).uri(url).header(HOST, &self.authority);
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

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("authority", &self.authority).finish_non_exhaustive()
    }
}

/// `host:port` out of a URL.
fn authority(url: &str) -> anyhow::Result<String> {
    let expected = || format!("`{url}` is no admin address, write one such as http://127.0.0.1:9090");
    let uri: http::Uri = url.trim_end_matches('/').parse().with_context(expected)?;
    if uri.scheme_str().is_some_and(|scheme| scheme != "http") {
        bail!("{}", expected());
    }
    let host = uri.host().with_context(expected)?;
    Ok(format!("{host}:{}", uri.port_u16().unwrap_or(DEFAULT_PORT)))
}

/// Where to connect to: an address to listen on everywhere is here, too.
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

const DEFAULT_PORT: u16 = 80;

/// A gateway that takes longer than this is not well.
pub(in crate::cli) const PATIENCE: Duration = Duration::from_secs(2);

/// What has to ask Redis a hundred thousand times takes its time.
pub(in crate::cli) const MUCH_PATIENCE: Duration = Duration::from_secs(60);

/// Three heartbeats of a stream.
const SILENCE: Duration = Duration::from_secs(45);

/// A list of all limits there can be.
const LARGEST_ANSWER: usize = 64 << 20;

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
    fn what_is_no_address_is_refused() {
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
        let client = Client::new("http://127.0.0.1:9090", Some("s3cret")).unwrap();
        assert!(!format!("{client:?}").contains("s3cret"));
        assert!(Client::new("http://127.0.0.1:9090", Some("two\nlines")).is_err());
    }
}
