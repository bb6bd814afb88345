//! TLS to the servers: which authorities are trusted, and which name a server must have.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::OnceLock;

use rustls::ClientConfig;
use rustls::RootCertStore;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tracing::warn;

use super::protocol::Protocol;
use crate::tls;
use crate::tls::CaCertificates;
use crate::tls::client::client_config;

/// How servers that speak TLS are verified.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ServerVerification {
    /// The only authorities that are trusted. `None`: those of the system.
    pub ca: Option<CaCertificates>,
    /// The name that every server must have, in place of the host in its URL.
    pub server_name: Option<ServerName<'static>>,
}

impl ServerVerification {
    /// The TLS of connections. The first call that needs the system's certificates reads them, which takes a while.
    pub(super) fn client_config(&self) -> ClientConfig {
        let roots = match &self.ca {
            None => Arc::clone(system_roots()),
            Some(certificates) => Arc::new(certificates.roots()),
        };
        client_config(roots)
    }
}

fn system_roots() -> &'static Arc<RootCertStore> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    ROOTS.get_or_init(|| {
        Arc::new(tls::client::system_roots().unwrap_or_else(|error| {
            warn!("https upstreams need `tls.ca`: {error}");
            RootCertStore::empty()
        }))
    })
}

/// TLS to one server.
pub(super) struct ServerTls {
    http1: TlsConnector,
    http2: TlsConnector,
    name: ServerName<'static>,
}

impl ServerTls {
    /// `client` is the upstream's. Sessions are resumed with the server that began them.
    pub(super) fn new(client: &ClientConfig, name: ServerName<'static>) -> Self {
        let mut client = client.clone();
        client.resumption = Resumption::in_memory_sessions(MAX_SESSIONS);
        let speaking = |protocol: &[u8]| {
            let mut client = client.clone();
            client.alpn_protocols = vec![protocol.to_vec()];
            TlsConnector::from(Arc::new(client))
        };
        Self { http1: speaking(b"http/1.1"), http2: speaking(b"h2"), name }
    }

    /// Begins TLS, and verifies the server.
    pub(super) async fn handshake(&self, stream: TcpStream, protocol: Protocol) -> io::Result<TlsStream<TcpStream>> {
        let connector = match protocol {
            Protocol::Http1 => &self.http1,
            Protocol::Http2 => &self.http2,
        };
        let handshake = connector.connect(self.name.clone(), stream).await;
        let stream = handshake.map_err(|error| io::Error::new(error.kind(), format!("TLS: {error}")))?;
        if protocol == Protocol::Http2 && stream.get_ref().1.alpn_protocol() != Some(b"h2") {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "TLS: the server does not speak HTTP/2"));
        }
        Ok(stream)
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secure").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Sessions kept for each server: a ticket is used once, and several connections begin at a time.
const MAX_SESSIONS: usize = 32;
