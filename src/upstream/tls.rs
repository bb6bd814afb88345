//! TLS towards the servers: whose word counts, and who a server must be.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::OnceLock;

use rustls::ClientConfig;
use rustls::RootCertStore;
use rustls::client::Resumption;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tracing::warn;

use super::connect::Protocol;

/// How servers that speak TLS are verified.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ServerVerification {
    /// Whose word counts, and nobody else's. Left out: whoever the system believes.
    pub ca: Option<CaCertificates>,
    /// Who every server must be, in place of the host in its URL.
    pub server_name: Option<ServerName<'static>>,
}

/// Certificates of authorities, at least one.
#[derive(Clone, Eq, PartialEq)]
pub struct CaCertificates(Vec<CertificateDer<'static>>);

/// Why a text holds no certificates of authorities.
#[derive(Debug, thiserror::Error)]
pub enum InvalidCaCertificates {
    #[error("there is no certificate in it")]
    None,
    #[error("it is not PEM: {0}")]
    NotPem(rustls::pki_types::pem::Error),
    /// Counted from 1.
    #[error("certificate {number} in it cannot be used: {error}")]
    Unusable { number: usize, error: rustls::Error },
}

impl CaCertificates {
    /// Reads every certificate of a PEM file; each must be one that can vouch for others.
    pub fn from_pem(pem: &str) -> Result<Self, InvalidCaCertificates> {
        let certificates = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>();
        let certificates = certificates.map_err(InvalidCaCertificates::NotPem)?;
        let mut roots = RootCertStore::empty();
        for (index, certificate) in certificates.iter().enumerate() {
            let added = roots.add(certificate.clone());
            added.map_err(|error| InvalidCaCertificates::Unusable { number: index + 1, error })?;
        }
        if certificates.is_empty() { Err(InvalidCaCertificates::None) } else { Ok(Self(certificates)) }
    }
}

impl fmt::Debug for CaCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} certificates", self.0.len())
    }
}

impl ServerVerification {
    /// What connections are made with. Reads the system's certificates when they are needed for the first time, which
    /// takes a while.
    pub(super) fn client(&self) -> ClientConfig {
        let roots = match &self.ca {
            None => Arc::clone(system_roots()),
            Some(CaCertificates(certificates)) => {
                let mut roots = RootCertStore::empty();
                roots.add_parsable_certificates(certificates.iter().cloned());
                Arc::new(roots)
            }
        };
        // Named here, not looked up in the process: nobody else's choice can be in force.
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has what TLS 1.2 and 1.3 need")
            .with_root_certificates(roots)
            .with_no_client_auth()
    }
}

fn system_roots() -> &'static Arc<RootCertStore> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    ROOTS.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            warn!("the system has no root certificates: no server with TLS is believed unless `tls.ca` names whose word counts");
        }
        Arc::new(roots)
    })
}

/// TLS to one server.
pub(super) struct ServerTls {
    http1: TlsConnector,
    http2: TlsConnector,
    name: ServerName<'static>,
}

impl ServerTls {
    /// `client` is of the upstream. Sessions are resumed with the server that began them.
    pub(super) fn new(client: &ClientConfig, name: ServerName<'static>) -> Self {
        let mut client = client.clone();
        client.resumption = Resumption::in_memory_sessions(MOST_SESSIONS);
        let speaking = |protocol: &[u8]| {
            let mut client = client.clone();
            client.alpn_protocols = vec![protocol.to_vec()];
            TlsConnector::from(Arc::new(client))
        };
        Self { http1: speaking(b"http/1.1"), http2: speaking(b"h2"), name }
    }

    /// Makes sure who is on the other side.
    pub(super) async fn handshake(&self, stream: TcpStream, protocol: Protocol) -> io::Result<TlsStream<TcpStream>> {
        let connector = match protocol {
            Protocol::Http1 => &self.http1,
            Protocol::Http2 => &self.http2,
        };
        let shaken = connector.connect(self.name.clone(), stream).await;
        let stream = shaken.map_err(|error| io::Error::new(error.kind(), format!("TLS: {error}")))?;
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

/// Kept for each server; tickets are used once, and several connections begin at a time.
const MOST_SESSIONS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pem: &str, expected: &str) {
        let error = CaCertificates::from_pem(pem).expect_err("no authorities").to_string();
        assert!(error.starts_with(expected), "{error}");
    }

    #[test]
    fn what_holds_no_authority_says_why() {
        check("", "there is no certificate in it");
        check("no PEM at all\n", "there is no certificate in it");
        check("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "there is no certificate in it");
        check("-----BEGIN CERTIFICATE-----\nAAAA\n", "it is not PEM");
        check("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "certificate 1 in it cannot be used");
    }
}
