//! A server's socket: TCP with or without TLS, or a Unix socket.

use std::future::poll_fn;
use std::io::IoSlice;
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::{fmt, io};

use hyper_util::client::legacy::connect::{Connected, Connection};
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, ReadHalf};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::coop::unconstrained;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tracing::warn;

use crate::upstream::response::ServerProtocol;
use crate::wire::tls;
use crate::wire::tls::{CaCertificates, client_config};
use crate::words::coalesce::poll_write_coalesced;

#[derive(Debug)]
pub(super) enum ServerStream {
    Plain(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
    /// Only for reading: another task writes.
    Reading(Box<ReadHalf<Self>>),
}

impl ServerStream {
    /// Whether the server, as far as is known, has sent nothing more and has not closed.
    pub(super) fn is_silent(&mut self) -> bool {
        let mut byte = [0];
        // Without TLS this asks the kernel only if it has reported something.
        let would_block = |read: io::Result<usize>| read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        match self {
            Self::Plain(stream) => return would_block(stream.try_read(&mut byte)),
            Self::Unix(stream) => return would_block(stream.try_read(&mut byte)),
            Self::Tls(_) | Self::Reading(_) => {}
        }
        let read = poll_fn(|cx| Pin::new(&mut *self).poll_read(cx, &mut ReadBuf::new(&mut byte)));
        // Unconstrained: a task without budget would be told that no bytes have arrived.
        pin!(unconstrained(read)).poll(&mut Context::from_waker(Waker::noop())).is_pending()
    }
}

impl AsyncRead for ServerStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Reading(half) => Pin::new(half).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for ServerStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Reading(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => poll_write_coalesced(Pin::new(stream), cx, slices),
            Self::Unix(stream) => poll_write_coalesced(Pin::new(stream), cx, slices),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Self::Reading(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Unix(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
            Self::Reading(_) => false,
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
            Self::Reading(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Reading(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }
}

/// The facts of a connection for the HTTP client of health checks.
impl Connection for ServerStream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

// TLS to the servers: which authorities are trusted, and which name a server must have.

/// Sessions kept for each server: a ticket is used once, and several connections begin at a time.
const MAX_SESSIONS: usize = 32;

/// How servers that speak TLS are verified.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ServerVerification {
    /// The only authorities that are trusted. `None`: the system's.
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
        Arc::new(tls::system_roots().unwrap_or_else(|error| {
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
    pub(super) async fn handshake(
        &self,
        stream: TcpStream,
        protocol: ServerProtocol,
    ) -> io::Result<TlsStream<TcpStream>> {
        let connector = match protocol {
            ServerProtocol::Http1 => &self.http1,
            ServerProtocol::Http2 => &self.http2,
        };
        let handshake = connector.connect(self.name.clone(), stream).await;
        let stream = handshake.map_err(|error| io::Error::new(error.kind(), format!("TLS: {error}")))?;
        if protocol == ServerProtocol::Http2 && stream.get_ref().1.alpn_protocol() != Some(b"h2") {
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
