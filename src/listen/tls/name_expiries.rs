//! When the certificate ends that clients are shown for a name.

use std::collections::BTreeMap;
use std::collections::HashSet;

use jiff::Timestamp;
use rustls::SignatureScheme;

use super::certificate::Certificate;

/// For each name of certificates, when what clients are shown for it ends.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct NameExpiries(BTreeMap<String, Timestamp>);

impl NameExpiries {
    /// Of the certificates of a listener. Clients get one with a kind of key that they can verify: of several kinds, the one
    /// that ends first counts.
    pub(super) fn of(certificates: &[Certificate], schemes: &[SignatureScheme]) -> Self {
        let (mut expiries, mut shown) = (Self::default(), HashSet::new());
        for Certificate { certified, names, expires, .. } in certificates {
            let kind = certified.key.choose_scheme(schemes).map(|signer| u16::from(signer.scheme()));
            for name in names {
                // A later certificate of the same name and kind of key is never shown.
                if shown.insert((name, kind)) {
                    expiries.note(name, *expires);
                }
            }
        }
        // A client that asks for an address names no host, and gets the first certificate.
        if let Some(Certificate { addresses, expires, .. }) = certificates.first() {
            for address in addresses {
                expiries.note(&address.to_string(), *expires);
            }
        }
        expiries
    }

    /// Adds what another listener shows. Of one name, what ends first counts.
    pub fn merge(&mut self, other: &Self) {
        for (name, expires) in other.iter() {
            self.note(name, expires);
        }
    }

    /// Names in alphabetical order, lower-case DNS names, some of them `*.example.com`, and addresses.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Timestamp)> {
        self.0.iter().map(|(name, expires)| (name.as_str(), *expires))
    }

    fn note(&mut self, name: &str, expires: Timestamp) {
        let first = self.0.entry(name.to_owned()).or_insert(expires);
        *first = expires.min(*first);
    }
}

#[cfg(test)]
mod tests {
    use rcgen::CertificateParams;
    use rcgen::KeyPair;
    use rcgen::PKCS_ECDSA_P256_SHA256;
    use rcgen::PKCS_ED25519;
    use rcgen::SignatureAlgorithm;
    use rcgen::date_time_ymd;
    use rustls::crypto::aws_lc_rs::default_provider;

    use super::*;

    fn certificate(names: &[&str], year: i32, algorithm: &'static SignatureAlgorithm) -> Certificate {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.not_after = date_time_ymd(year, 1, 1);
        let cert = params.self_signed(&key).unwrap();
        Certificate::from_pem(&cert.pem(), &key.serialize_pem()).unwrap()
    }

    #[track_caller]
    fn check(certificates: &[Certificate], expected: &[&str]) {
        let schemes = default_provider().signature_verification_algorithms.supported_schemes();
        let expiries = NameExpiries::of(certificates, &schemes);
        let ends = expiries.iter().map(|(name, expires)| format!("{name} {}", &expires.to_string()[..4]));
        assert_eq!(ends.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn each_name_ends_with_the_certificate_that_is_shown_for_it() {
        let p256 = |names: &[&str], year| certificate(names, year, &PKCS_ECDSA_P256_SHA256);
        check(&[p256(&["*.a.test", "a.test"], 2030)], &["*.a.test 2030", "a.test 2030"]);
        // The second is never shown for `a.test`.
        check(&[p256(&["a.test"], 2031), p256(&["a.test", "b.test"], 2030)], &["a.test 2031", "b.test 2030"]);
        // Which one of two kinds of keys is shown depends on the client.
        check(&[p256(&["a.test"], 2031), certificate(&["a.test"], 2030, &PKCS_ED25519)], &["a.test 2030"]);
    }

    #[test]
    fn an_address_ends_with_the_first_certificate() {
        let certificates = [("127.0.0.1", 2031), ("127.0.0.2", 2030)];
        let certificates = certificates.map(|(name, year)| certificate(&[name], year, &PKCS_ED25519));
        check(&certificates, &["127.0.0.1 2031"]);
        check(&[], &[]);
    }
}
