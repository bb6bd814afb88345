//! One message to one webhook, over a connection of its own.

use std::io;
use std::sync::Arc;
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
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::RootCertStore;
use rustls::pki_types::ServerName;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;
use tokio::net::lookup_host;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::Webhook;

/// Why a message did not arrive; without the secret of the address.
#[derive(Debug, thiserror::Error)]
pub(super) enum Undelivered {
    #[error("it answered {0}")]
    Status(StatusCode),
    #[error("it did not answer within {} s", PATIENCE.as_secs())]
    Silent,
    #[error("{0}")]
    Connection(#[from] io::Error),
    #[error("{0}")]
    Http(#[from] hyper::Error),
}

/// From looking its name up to the head of its answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Sends `json`. Only a status of success means that it arrived: a redirection is not followed.
pub(super) async fn post(webhook: &Webhook, json: Bytes) -> Result<(), Undelivered> {
    let status = timeout(PATIENCE, ask(webhook, json)).await.map_err(|_| Undelivered::Silent)??;
    if status.is_success() { Ok(()) } else { Err(Undelivered::Status(status)) }
}

async fn ask(webhook: &Webhook, json: Bytes) -> Result<StatusCode, Undelivered> {
    let stream = connect(webhook).await?;
    stream.set_nodelay(true)?;
    if webhook.is_https() {
        let name = ServerName::try_from(webhook.host().to_owned()).map_err(io::Error::other)?;
        let stream = TlsConnector::from(verifying()?).connect(name, stream).await?;
        exchange(stream, webhook, json).await
    } else {
        exchange(stream, webhook, json).await
    }
}

async fn connect(webhook: &Webhook) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
    for address in lookup_host((webhook.host(), webhook.port())).await? {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

async fn exchange<S>(stream: S, webhook: &Webhook, json: Bytes) -> Result<StatusCode, Undelivered>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let request = Request::post(webhook.target())
        .header(HOST, webhook.authority())
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, concat!("portcullis/", env!("CARGO_PKG_VERSION")))
        .header(CONNECTION, "close")
        .body(Full::new(json))
        .map_err(io::Error::other)?;
    let (mut sender, connection) =
        http1::Builder::new().max_buf_size(MAX_BUFFER).handshake(TokioIo::new(stream)).await?;
    let talk = async {
        let answer = sender.send_request(request).await?;
        Ok(answer.status())
    };
    let driven = async {
        match connection.await {
            Err(error) => error,
            // Whatever it said before it closed, `talk` has.
            Ok(()) => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        status = talk => status,
        error = driven => Err(error.into()),
    }
}

/// More of an answer's head is nonsense; its body is not read.
const MAX_BUFFER: usize = 16 * 1024;

/// TLS that believes whom the system believes. Reading the system's certificates takes a while: once.
fn verifying() -> io::Result<Arc<ClientConfig>> {
    static VERIFYING: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(known) = VERIFYING.get() {
        return Ok(Arc::clone(known));
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(io::Error::other("the system has no root certificates"));
    }
    // Named here, not looked up in the process: nobody else's choice can be in force.
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = builder.map_err(io::Error::other)?.with_root_certificates(roots).with_no_client_auth();
    Ok(Arc::clone(VERIFYING.get_or_init(|| Arc::new(config))))
}
