//! A TLS client that can be configured in detail, with HTTP written by the test.

use std::io;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned};

use super::authority::{CertificateAuthority, Certified};
use super::clock::PATIENCE;
use super::message::{Response, Wire};

/// The TLS settings of a client. Clones share their session tickets.
#[derive(Clone, Debug)]
pub struct TlsClientConfig(Arc<ClientConfig>);

/// A connection.
pub type TlsStream = StreamOwned<ClientConnection, TcpStream>;

impl TlsClientConfig {
    /// Trusts this authority, and presents the certificate if there is one.
    pub fn new(authority: &CertificateAuthority, certified: Option<&Certified>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(certificate(authority.pem())).expect("an authority");
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
        let builder = builder.with_safe_default_protocol_versions().expect("versions").with_root_certificates(roots);
        Self(Arc::new(match certified {
            None => builder.with_no_client_auth(),
            Some(Certified { cert, key }) => {
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
                builder.with_client_auth_cert(vec![certificate(cert)], key).expect("a certificate and its key")
            }
        }))
    }

    /// Offers these ALPN protocols.
    #[must_use]
    pub fn offering(&self, protocols: &[&str]) -> Self {
        let mut config = ClientConfig::clone(&self.0);
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Self(Arc::new(config))
    }

    /// Sends no server name (SNI).
    #[must_use]
    pub fn without_sni(&self) -> Self {
        let mut config = ClientConfig::clone(&self.0);
        config.enable_sni = false;
        Self(Arc::new(config))
    }

    pub fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.0)
    }

    /// Connects and completes the handshake.
    pub fn try_connect(&self, address: SocketAddr, name: &str) -> io::Result<TlsClient> {
        self.handshake(TcpStream::connect(address)?, name)
    }

    /// Completes the handshake on an open connection.
    pub fn handshake(&self, socket: TcpStream, name: &str) -> io::Result<TlsClient> {
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        let name = ServerName::try_from(name.to_owned()).expect("a name");
        let session = ClientConnection::new(Arc::clone(&self.0), name).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(session, socket);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(TlsClient { wire: Wire::new(stream) })
    }

    #[track_caller]
    pub fn connect(&self, address: SocketAddr, name: &str) -> TlsClient {
        self.try_connect(address, name).expect("a handshake")
    }
}

/// A connection.
#[derive(Debug)]
pub struct TlsClient {
    wire: Wire<TlsStream>,
}

impl TlsClient {
    /// Sends a request and waits for its response. `None`: the connection ended.
    pub fn try_get(&mut self, host: &str) -> Option<Response> {
        self.send(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        self.wire.response("GET").ok()
    }

    #[track_caller]
    pub fn get(&mut self, host: &str) -> Response {
        self.try_get(host).expect("an answer")
    }

    /// Sends bytes. If the connection is closed, reading fails later.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.wire.stream.write_all(bytes.as_ref()).and_then(|()| self.wire.stream.flush());
    }

    #[track_caller]
    pub fn response(&mut self) -> Response {
        self.wire.response("GET").expect("an answer")
    }

    /// Sends `close_notify` and closes the sending side of the socket. Reading goes on.
    pub fn finish(&mut self) {
        self.wire.stream.conn.send_close_notify();
        self.wire.stream.flush().expect("the other side still reads");
        self.wire.stream.sock.shutdown(std::net::Shutdown::Write).expect("a connected socket");
    }

    /// Whether the handshake resumed a session.
    pub fn is_resumed(&self) -> bool {
        self.wire.stream.conn.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    pub fn protocol(&self) -> Option<String> {
        self.wire.stream.conn.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned())
    }

    /// The certificate of the server.
    #[track_caller]
    pub fn certificate(&self) -> CertificateDer<'static> {
        let chain = self.wire.stream.conn.peer_certificates().expect("a certificate");
        chain.first().expect("a certificate").clone().into_owned()
    }

    /// Reads to the end, and returns whether the server sent `close_notify`.
    pub fn gets_close_notify(&mut self) -> bool {
        self.wire.stream.read_to_end(&mut Vec::new()).is_ok()
    }

    /// Whether the connection ends with nothing more to read.
    pub fn ends(&mut self) -> bool {
        use std::io::ErrorKind::{TimedOut, WouldBlock};
        match self.wire.stream.read(&mut [0]) {
            Ok(length) => length == 0,
            Err(error) => !matches!(error.kind(), WouldBlock | TimedOut),
        }
    }

    /// The stream, for another protocol.
    pub fn into_stream(self) -> TlsStream {
        self.wire.stream
    }
}

pub fn certificate(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate")
}
