//! TLS towards servers, and the certificates of authorities, which listeners need as well.

use std::fmt;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

// How the gateway verifies servers: applications, webhooks and Redis.

/// The system has no root certificates that can be used.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the system has no root certificates, {unreadable} cannot be read")]
pub struct NoSystemRoots {
    unreadable: usize,
}

/// Reads the system's root certificates, which takes a while: callers keep them.
pub fn system_roots() -> Result<RootCertStore, NoSystemRoots> {
    let mut roots = RootCertStore::empty();
    let (_, unreadable) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() { Err(NoSystemRoots { unreadable }) } else { Ok(roots) }
}

/// Accepts servers whose certificates lead to one of `roots`.
pub fn client_config(roots: impl Into<Arc<RootCertStore>>) -> ClientConfig {
    // Named here and not looked up in the process, where another provider could be in force.
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has what TLS 1.2 and 1.3 need")
        .with_root_certificates(roots)
        .with_no_client_auth()
}

// Certificates of authorities that a configuration names.

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
    /// Reads every certificate of a PEM file. Each must be one that can vouch for others.
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

    /// The certificates as rustls verifies with them.
    pub fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(self.0.iter().cloned());
        roots
    }
}

impl fmt::Debug for CaCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} certificates", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pem: &str, expected: &str) {
        let error = CaCertificates::from_pem(pem).expect_err("no authorities").to_string();
        assert!(error.starts_with(expected), "{error}");
    }

    #[test]
    fn a_file_without_certificates_of_authorities_says_why() {
        check("", "there is no certificate in it");
        check("no PEM at all\n", "there is no certificate in it");
        check("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "there is no certificate in it");
        check("-----BEGIN CERTIFICATE-----\nAAAA\n", "it is not PEM");
        check("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "certificate 1 in it cannot be used");
    }
}
