//! Certificate authorities and certificates for tests.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::tls_client::certificate;

/// A certificate authority.
#[derive(Debug)]
pub struct CertificateAuthority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    pem: String,
}

/// A certificate and its key, both PEM.
#[derive(Clone, Debug)]
pub struct Certified {
    pub cert: String,
    pub key: String,
}

impl CertificateAuthority {
    /// A new root. All roots have the same name.
    pub fn generate() -> Self {
        let mut params = CertificateParams::default();
        // Another name than the certificates have: they would seem self-signed.
        params.distinguished_name.push(DnType::CommonName, "authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("a certificate");
        Self { pem: issuer.pem(), issuer }
    }

    /// An intermediate authority under this one.
    #[must_use]
    pub fn intermediate(&self) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "authority between");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::signed_by(params, key, &self.issuer).expect("a certificate");
        Self { pem: issuer.pem(), issuer }
    }

    /// Its own certificate.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// A certificate for these names and addresses, and its key.
    pub fn key_pair(&self, names: &[&str]) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let Certified { cert, key } = self.server(names);
        (certificate(&cert), PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key"))
    }

    /// A certificate for a server with these names and addresses.
    pub fn server(&self, names: &[&str]) -> Certified {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        self.issue(CertificateParams::new(names).expect("names"), ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A certificate for a client.
    pub fn client(&self) -> Certified {
        self.issue(CertificateParams::default(), ExtendedKeyUsagePurpose::ClientAuth)
    }

    /// A certificate for a server with these names, which ends when that year begins.
    pub fn ending(&self, names: &[&str], year: i32) -> Certified {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        self.issue(params, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// An expired certificate for a server.
    pub fn expired(&self, name: &str) -> Certified {
        let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
        params.not_before = rcgen::date_time_ymd(2019, 1, 1);
        params.not_after = rcgen::date_time_ymd(2020, 1, 1);
        self.issue(params, ExtendedKeyUsagePurpose::ServerAuth)
    }

    fn issue(&self, mut params: CertificateParams, purpose: ExtendedKeyUsagePurpose) -> Certified {
        params.extended_key_usages.push(purpose);
        let key = KeyPair::generate().expect("a key");
        let cert = params.signed_by(&key, &self.issuer).expect("a certificate");
        Certified { cert: cert.pem(), key: key.serialize_pem() }
    }
}
