//! The TLS configuration of a listener.

use std::fmt;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::server::ProducesTickets;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;

use super::certificate::Certificate;
use super::certificate_resolver::CertificateResolver;
use super::name_expiries::NameExpiries;
use crate::tls::CaCertificates;

/// The `tls` of a listener as it is configured.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    /// At least one. The first is for clients that ask for no host, or an unknown one.
    pub certificates: Vec<Certificate>,
    /// Clients must present a certificate that one of these has issued.
    pub client_ca: Option<CaCertificates>,
}

/// TLS of one listener. Session tickets stay valid for this listener until its `client_ca` changes.
pub struct Tls {
    settings: Settings,
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

/// The protocols offered in ALPN, by preference.
const ALPN_PROTOCOLS: [&[u8]; 3] = [ALPN_HTTP2, b"http/1.1", b"http/1.0"];
pub(super) const ALPN_HTTP2: &[u8] = b"h2";

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("settings", &self.settings).finish_non_exhaustive()
    }
}
