//! From a fresh socket to an encrypted one.

use std::io;

use rustls::HandshakeKind;
use rustls::ServerConnection;
use rustls::pki_types::UnixTime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::HTTP2;
use super::Tls;
use crate::listen::recognize::Protocol;
use crate::listen::socket::Socket;

/// What a handshake has told of a connection.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TlsInfo {
    /// Whom the client said it wants to speak with (SNI).
    pub server_name: Option<Box<str>>,
    /// It has presented a certificate, as it must here.
    pub client_is_certified: bool,
}

/// An encrypted connection, and what is spoken on it where the two agreed on that.
pub(in crate::listen) struct TlsHandshake {
    pub(in crate::listen) stream: Box<TlsStream<Socket>>,
    pub(in crate::listen) tls_info: TlsInfo,
    pub(in crate::listen) protocol: Option<Protocol>,
}

/// Speaks first. Whoever fails hears of it in an alert, and no more.
pub(in crate::listen) async fn shake_hands(tls: &Tls, socket: Socket) -> io::Result<TlsHandshake> {
    let acceptor = TlsAcceptor::from(tls.config.clone());
    let bounded = |session: &mut ServerConnection| session.set_buffer_limit(Some(BUFFER));
    let stream = Box::new(acceptor.accept_with(socket, bounded).await?);
    let (_, session) = stream.get_ref();
    certify(tls, session)?;
    let tls_info = TlsInfo {
        server_name: session.server_name().map(Into::into),
        client_is_certified: session.peer_certificates().is_some(),
    };
    let protocol = match session.alpn_protocol() {
        None => None,
        Some(HTTP2) => Some(Protocol::Http2),
        Some(_) => Some(Protocol::Http1),
    };
    Ok(TlsHandshake { stream, tls_info, protocol })
}

/// A client that resumes shows nothing: what it showed the first time must be good still.
fn certify(tls: &Tls, session: &ServerConnection) -> io::Result<()> {
    let Some(verifier) = &tls.verifier else { return Ok(()) };
    let Some([certificate, intermediates @ ..]) = session.peer_certificates() else {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the client has no certificate"));
    };
    if session.handshake_kind() == Some(HandshakeKind::Resumed) {
        verifier.verify_client_cert(certificate, intermediates, UnixTime::now()).map_err(io::Error::other)?;
    }
    Ok(())
}

/// What waits, encrypted, for a client to read.
const BUFFER: usize = 32 * 1024;
