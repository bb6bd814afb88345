//! TLS on a listener: which certificates it shows, and whose it wants to see.

pub mod certificate;

mod choice;
mod handshake;
mod x509;

use std::fmt;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::server::ProducesTickets;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;

pub use self::certificate::Certificate;
pub use self::certificate::InvalidCertificate;
pub use self::handshake::TlsInfo;

pub(super) use self::handshake::TlsHandshake;
pub(super) use self::handshake::shake_hands;

use self::choice::Choice;
use crate::tls::CaCertificates;

/// What the `tls` of a listener says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    /// At least one: the first is for clients that name nobody who is known.
    pub certificates: Vec<Certificate>,
    /// Clients must present a certificate of one of these.
    pub client_ca: Option<CaCertificates>,
}

/// TLS as one listener speaks it. What a client was told to resume with is good for this listener, for as long as
/// the same authorities vouch for its clients.
pub struct Tls {
    settings: Settings,
    config: Arc<ServerConfig>,
    tickets: Arc<dyn ProducesTickets>,
    verifier: Option<Arc<dyn ClientCertVerifier>>,
}

/// Why TLS cannot be spoken: the system has no random numbers, for instance.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TlsSetupError(rustls::Error);

impl Tls {
    /// `before` is what the same listener spoke until now.
    pub fn new(settings: Settings, before: Option<&Arc<Self>>) -> Result<Arc<Self>, TlsSetupError> {
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
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(TlsSetupError)?;
        let builder = match &verifier {
            Some(verifier) => builder.with_client_cert_verifier(Arc::clone(verifier)),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_cert_resolver(Arc::new(Choice::new(&settings.certificates)));
        config.alpn_protocols = PROTOCOLS.iter().map(|name| name.to_vec()).collect();
        config.ticketer = Arc::clone(&tickets);
        // A request sent before the handshake is done could be sent again by anyone who saw it.
        config.max_early_data_size = 0;
        Ok(Arc::new(Self { settings, config: Arc::new(config), tickets, verifier }))
    }
}

/// What clients may choose from, by preference.
const PROTOCOLS: [&[u8]; 3] = [HTTP2, b"http/1.1", b"http/1.0"];
const HTTP2: &[u8] = b"h2";

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("settings", &self.settings).finish_non_exhaustive()
    }
}
