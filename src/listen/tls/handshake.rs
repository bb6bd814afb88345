//! The TLS handshake of a client.

use std::io;

use rustls::HandshakeKind;
use rustls::ServerConnection;
use rustls::pki_types::UnixTime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::server_config::ALPN_HTTP2;
use super::server_config::Tls;
use super::tls_info::TlsInfo;
use crate::listen::protocol::Protocol;
use crate::listen::socket::Socket;

/// A finished handshake, with the protocol if one was negotiated.
pub(in crate::listen) struct TlsHandshake {
    pub(in crate::listen) stream: Box<TlsStream<Socket>>,
    pub(in crate::listen) tls_info: TlsInfo,
    pub(in crate::listen) protocol: Option<Protocol>,
}

/// Does the handshake. A client that fails gets an alert, and nothing else.
pub(in crate::listen) async fn shake_hands(tls: &Tls, socket: Socket) -> io::Result<TlsHandshake> {
    let acceptor = TlsAcceptor::from(tls.config.clone());
    let bounded = |session: &mut ServerConnection| session.set_buffer_limit(Some(WRITE_BUFFER_LIMIT));
    let stream = Box::new(acceptor.accept_with(socket, bounded).await?);
    let (_, session) = stream.get_ref();
    verify_client(tls, session)?;
    let tls_info = TlsInfo {
        server_name: session.server_name().map(Into::into),
        client_is_certified: session.peer_certificates().is_some(),
    };
    let protocol = match session.alpn_protocol() {
        None => None,
        Some(ALPN_HTTP2) => Some(Protocol::Http2),
        Some(_) => Some(Protocol::Http1),
    };
    Ok(TlsHandshake { stream, tls_info, protocol })
}

/// Checks the certificate of a client. One that resumes a session presents none, so the certificate of that session is
/// verified again: it may have expired.
fn verify_client(tls: &Tls, session: &ServerConnection) -> io::Result<()> {
    let Some(verifier) = &tls.verifier else { return Ok(()) };
    let Some([certificate, intermediates @ ..]) = session.peer_certificates() else {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the client has no certificate"));
    };
    if session.handshake_kind() == Some(HandshakeKind::Resumed) {
        verifier.verify_client_cert(certificate, intermediates, UnixTime::now()).map_err(io::Error::other)?;
    }
    Ok(())
}

/// In bytes: encrypted data that waits for a client to read.
const WRITE_BUFFER_LIMIT: usize = 32 * 1024;
