//! TLS of a listener: its certificates, and the certificates of clients that it accepts.

pub mod certificate;

use std::sync::Arc;
use std::{fmt, io};

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::UnixTime;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ProducesTickets, WebPkiClientVerifier};
use rustls::{HandshakeKind, ServerConfig, ServerConnection};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

pub use self::certificate::{Certificate, InvalidCertificate, NameExpiries};
use crate::listen::client_stream::Socket;
use crate::listen::handler::ClientProtocol;
use crate::listen::tls::certificate::CertificateResolver;
use crate::wire::tls::CaCertificates;

/// In bytes: encrypted data that waits for a client to read.
const WRITE_BUFFER_LIMIT: usize = 32 * 1024;

/// A finished handshake, with the protocol if one was negotiated.
pub(in crate::listen) struct TlsHandshake {
    pub(in crate::listen) stream: Box<TlsStream<Socket>>,
    pub(in crate::listen) tls_info: TlsInfo,
    pub(in crate::listen) protocol: Option<ClientProtocol>,
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
        Some(ALPN_HTTP2) => Some(ClientProtocol::Http2),
        Some(_) => Some(ClientProtocol::Http1),
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

// The TLS configuration of a listener.

/// The protocols offered in ALPN, by preference.
const ALPN_PROTOCOLS: [&[u8]; 3] = [ALPN_HTTP2, b"http/1.1", b"http/1.0"];

pub(super) const ALPN_HTTP2: &[u8] = b"h2";

/// The `tls` of a listener as it is configured.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TlsSettings {
    /// At least one. The first is for clients that ask for no host, or an unknown one.
    pub certificates: Vec<Certificate>,
    /// Clients must present a certificate that one of these has issued.
    pub client_ca: Option<CaCertificates>,
}

/// TLS of one listener. Session tickets stay valid for this listener until its `client_ca` changes.
pub struct Tls {
    settings: TlsSettings,
    pub(super) config: Arc<ServerConfig>,
    tickets: Arc<dyn ProducesTickets>,
    pub(super) verifier: Option<Arc<dyn ClientCertVerifier>>,
    name_expiries: NameExpiries,
}

/// Why TLS cannot be set up, for instance because the system has no random numbers.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TlsSetupError(rustls::Error);

impl Tls {
    /// `before` is the TLS of the same listener until now.
    pub fn new(settings: TlsSettings, before: Option<&Arc<Self>>) -> Result<Arc<Self>, TlsSetupError> {
        if let Some(before) = before.filter(|before| before.settings == settings) {
            return Ok(Arc::clone(before));
        }
        let same_clients = before.filter(|before| before.settings.client_ca == settings.client_ca);
        let tickets = match same_clients {
            Some(before) => Arc::clone(&before.tickets),
            None => aws_lc_rs::Ticketer::new().map_err(TlsSetupError)?,
        };
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = match &settings.client_ca {
            None => None,
            Some(authorities) => {
                let roots = Arc::new(authorities.roots());
                let builder = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider));
                Some(builder.build().map_err(|error| TlsSetupError(rustls::Error::General(error.to_string())))?)
            }
        };
        let schemes = provider.signature_verification_algorithms.supported_schemes();
        let name_expiries = NameExpiries::of(&settings.certificates, &schemes);
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(TlsSetupError)?;
        let builder = match &verifier {
            Some(verifier) => builder.with_client_cert_verifier(Arc::clone(verifier)),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_cert_resolver(Arc::new(CertificateResolver::new(&settings.certificates)));
        config.alpn_protocols = ALPN_PROTOCOLS.iter().map(|name| name.to_vec()).collect();
        config.ticketer = Arc::clone(&tickets);
        // Early data could be replayed by anyone who saw it.
        config.max_early_data_size = 0;
        Ok(Arc::new(Self { settings, config: Arc::new(config), tickets, verifier, name_expiries }))
    }

    /// When what clients are shown for each name ends.
    pub(in crate::listen) fn name_expiries(&self) -> &NameExpiries {
        &self.name_expiries
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("settings", &self.settings).finish_non_exhaustive()
    }
}

// The facts of the TLS handshake of a client.

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TlsInfo {
    /// The host that the client asked for (SNI).
    pub server_name: Option<Box<str>>,
    /// The client has presented a certificate, as this listener requires.
    pub client_is_certified: bool,
}
