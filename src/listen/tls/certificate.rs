//! A certificate and its key, checked against each other.

use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::sign::CertifiedKey;

use super::x509;

/// A chain of certificates with the key of the first.
#[derive(Clone, Debug)]
pub struct Certificate {
    pub(super) certified: Arc<CertifiedKey>,
    /// Lower-case DNS names, some of them `*.example.com`.
    pub names: Vec<String>,
    pub addresses: Vec<IpAddr>,
    /// Not valid before this.
    pub begins: Timestamp,
    /// Not valid after this.
    pub expires: Timestamp,
}

/// Why a certificate cannot be served.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidCertificate {
    #[error("there is no certificate in it")]
    NoCertificate,
    #[error("the certificate in it is malformed")]
    Malformed,
    #[error("there is no key in it")]
    NoKey,
    #[error("the key in it is encrypted")]
    EncryptedKey,
    #[error("TLS cannot use the kind of key in it")]
    UnsupportedKey,
    #[error("the key does not belong to the certificate")]
    Mismatch,
}

impl Certificate {
    /// Parses the chain, the server's own certificate first, from one PEM text, and the key from another. Both may be in the
    /// same text.
    pub fn from_pem(chain: &str, key: &str) -> Result<Self, InvalidCertificate> {
        let chain = certificates(chain).ok_or(InvalidCertificate::Malformed)?;
        let first = chain.first().ok_or(InvalidCertificate::NoCertificate)?;
        let facts = x509::parse(first).ok_or(InvalidCertificate::Malformed)?;
        let (names, addresses) = (facts.names, facts.addresses);
        let (begins, expires) = (facts.begins, facts.expires);
        let Ok(found) = PrivateKeyDer::from_pem_slice(key.as_bytes()) else {
            let is_encrypted = key.contains("BEGIN ENCRYPTED PRIVATE KEY");
            return Err(if is_encrypted { InvalidCertificate::EncryptedKey } else { InvalidCertificate::NoKey });
        };
        let key = any_supported_type(&found).map_err(|_| {
            // A key that is encrypted in the old PEM way parses as a key, but is not usable.
            let is_encrypted = key.contains("Proc-Type: 4,ENCRYPTED");
            if is_encrypted { InvalidCertificate::EncryptedKey } else { InvalidCertificate::UnsupportedKey }
        })?;
        // Compared here, because rustls does not check certificates of version 1.
        if key.public_key().is_none_or(|public_key| public_key.as_ref() != facts.public_key) {
            return Err(InvalidCertificate::Mismatch);
        }
        Ok(Self { certified: Arc::new(CertifiedKey::new(chain, key)), names, addresses, begins, expires })
    }
}

/// Equal chains have the same key.
impl PartialEq for Certificate {
    fn eq(&self, other: &Self) -> bool {
        self.certified.cert == other.certified.cert
    }
}

impl Eq for Certificate {}

/// Every certificate of a PEM text; `None`: one of them is malformed.
pub(super) fn certificates(pem: &str) -> Option<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().ok()
}

#[cfg(test)]
mod tests {
    use rcgen::CertifiedKey;
    use rcgen::KeyPair;

    use super::*;

    fn example(name: &str) -> (String, String) {
        let CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        (cert.pem(), signing_key.serialize_pem())
    }

    #[test]
    fn a_certificate_and_its_key_belong_together() {
        let (chain, key) = example("a.test");
        let certificate = Certificate::from_pem(&chain, &key).unwrap();
        assert!(certificate.names.contains(&"a.test".to_owned()), "{:?}", certificate.names);
        let together = format!("{key}{chain}");
        assert_eq!(Certificate::from_pem(&together, &together).unwrap(), certificate);
    }

    #[track_caller]
    fn check(chain: &str, key: &str, expected: InvalidCertificate) {
        assert_eq!(Certificate::from_pem(chain, key).unwrap_err(), expected);
    }

    #[test]
    fn certificates_that_cannot_be_served_are_refused() {
        use InvalidCertificate::*;
        let (chain, key) = example("a.test");
        check(&chain, &KeyPair::generate().unwrap().serialize_pem(), Mismatch);
        check("", &key, NoCertificate);
        check(&key, &key, NoCertificate);
        check("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", &key, Malformed);
        check("-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n", &key, Malformed);
        check(&chain, "", NoKey);
        check(&chain, &chain, NoKey);
        let label = |name: &str| key.replace("PRIVATE KEY", name);
        check(&chain, &label("ENCRYPTED PRIVATE KEY"), EncryptedKey);
        check(&chain, "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n", UnsupportedKey);
    }
}
