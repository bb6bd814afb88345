//! A certificate and its key, checked against each other.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use jiff::Timestamp;
use rustls::SignatureScheme;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;
use x509_parser::time::ASN1Time;

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
        let facts = parse(first).ok_or(InvalidCertificate::Malformed)?;
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

// Reads the fields of a certificate that serving it needs: its names, its validity and its public key.
//
// These are the operator's own certificates. Clients verify them, not we.

/// The fields of a certificate.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct CertificateFacts<'d> {
    /// Lower-case DNS names, some of them `*.example.com`: its alternative names and its common name.
    pub(super) names: Vec<String>,
    /// The addresses among its alternative names.
    pub(super) addresses: Vec<IpAddr>,
    pub(super) begins: Timestamp,
    pub(super) expires: Timestamp,
    /// In DER, as the certificate has it.
    pub(super) public_key: &'d [u8],
}

/// Parses a certificate in DER; `None`: it is malformed.
pub(super) fn parse(der: &[u8]) -> Option<CertificateFacts<'_>> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let (mut names, mut addresses) = (Vec::new(), Vec::new());
    for name in certificate.subject_alternative_name().ok()?.iter().flat_map(|all| &all.value.general_names) {
        match name {
            GeneralName::DNSName(name) => add(name, &mut names),
            GeneralName::IPAddress(octets) => addresses.extend(address(octets)),
            _ => {}
        }
    }
    // Old certificates have their name here.
    for name in certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok()) {
        add(name, &mut names);
    }
    let validity = certificate.validity();
    let (begins, expires) = (moment(validity.not_before)?, moment(validity.not_after)?);
    Some(CertificateFacts {
        names,
        addresses,
        begins,
        expires,
        public_key: certificate.tbs_certificate.subject_pki.raw,
    })
}

fn add(name: &str, names: &mut Vec<String>) {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._*".contains(&byte);
    if !name.is_empty() && name.bytes().all(fits) && !names.contains(&name) {
        names.push(name);
    }
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(octets).map(|octets| IpAddr::from(Ipv4Addr::from(octets)));
    v4.or_else(|_| <[u8; 16]>::try_from(octets).map(|octets| Ipv6Addr::from(octets).into())).ok()
}

fn moment(time: ASN1Time) -> Option<Timestamp> {
    Timestamp::from_second(time.timestamp()).ok()
}

// Chooses the certificate that a client gets.

/// The certificates of a listener by host name.
#[derive(Debug)]
pub(super) struct CertificateResolver {
    exact: HashMap<String, Vec<Arc<CertifiedKey>>>,
    /// By the part behind `*.`.
    wildcard: HashMap<String, Vec<Arc<CertifiedKey>>>,
    /// For clients that ask for no host, or an unknown one.
    default: Option<Arc<CertifiedKey>>,
}

impl CertificateResolver {
    pub(super) fn new(certificates: &[Certificate]) -> Self {
        let (mut exact, mut wildcard): (HashMap<_, Vec<_>>, HashMap<_, Vec<_>>) = Default::default();
        for certificate in certificates {
            for name in &certificate.names {
                let (names, name) = match name.strip_prefix("*.") {
                    Some(parent) => (&mut wildcard, parent),
                    None => (&mut exact, name.as_str()),
                };
                names.entry(name.to_owned()).or_default().push(Arc::clone(&certificate.certified));
            }
        }
        let default = certificates.first().map(|certificate| Arc::clone(&certificate.certified));
        Self { exact, wildcard, default }
    }

    /// The certificates for a host: with its exact name, else with a wildcard.
    fn for_host(&self, name: &str) -> &[Arc<CertifiedKey>] {
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let with_wildcard = || self.wildcard.get(name.split_once('.')?.1);
        self.exact.get(&name).or_else(with_wildcard).map_or(&[], Vec::as_slice)
    }
}

impl ResolvesServerCert for CertificateResolver {
    fn resolve(&self, client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let candidates = client.server_name().map_or(&[][..], |name| self.for_host(name));
        // A host may have a certificate for each kind of key: choose the first that this client can verify.
        let suits = |certified: &&Arc<CertifiedKey>| certified.key.choose_scheme(client.signature_schemes()).is_some();
        candidates.iter().find(suits).or(candidates.first()).or(self.default.as_ref()).cloned()
    }
}

// When the certificate ends that clients are shown for a name.

/// For each name of certificates, when what clients are shown for it ends.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct NameExpiries(BTreeMap<String, Timestamp>);

impl NameExpiries {
    /// The expiry of the certificates of a listener. Clients get a certificate with a kind of key that they can verify:
    /// if there are several kinds, the earliest expiry counts.
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

    /// Adds the certificates of another listener. If both have a name, the earlier expiry counts.
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
    use proptest::prelude::*;
    use rcgen::{
        CertificateParams, CertifiedKey, DnType, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, PublicKeyData,
        SignatureAlgorithm, date_time_ymd,
    };
    use rustls::crypto::aws_lc_rs::default_provider;

    use super::*;

    fn example() -> (Vec<u8>, Vec<u8>) {
        let key = KeyPair::generate().unwrap();
        let mut params =
            CertificateParams::new(["A.example.com", "*.example.com", "192.0.2.1", "2001:db8::1"].map(str::to_owned))
                .unwrap();
        params.distinguished_name.push(DnType::CommonName, "common.example.com");
        params.not_before = date_time_ymd(1999, 12, 31);
        params.not_after = date_time_ymd(2126, 2, 28);
        (params.self_signed(&key).unwrap().der().to_vec(), key.subject_public_key_info())
    }

    #[test]
    fn names_validity_and_key_of_a_certificate_are_read() {
        let (der, public_key) = example();
        let facts = parse(&der).unwrap();
        assert_eq!(facts.names, ["a.example.com", "*.example.com", "common.example.com"]);
        assert_eq!(facts.addresses, ["192.0.2.1", "2001:db8::1"].map(|text| text.parse::<IpAddr>().unwrap()));
        assert_eq!(facts.begins.to_string(), "1999-12-31T00:00:00Z");
        assert_eq!(facts.expires.to_string(), "2126-02-28T00:00:00Z");
        assert_eq!(facts.public_key, public_key);
    }

    #[test]
    fn an_invalid_name_is_skipped() {
        let mut names = Vec::new();
        for name in ["not a name", "", ".", "\u{ff}", "a.test", "A.test."] {
            add(name, &mut names);
        }
        assert_eq!(names, ["a.test"]);
    }

    proptest! {
        #[test]
        fn nothing_that_is_read_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn a_certificate_that_was_damaged_does_not_panic(at in 0..300_usize, byte: u8, length in 0..600_usize) {
            let (mut der, _) = example();
            if let Some(damaged) = der.get_mut(at) {
                *damaged = byte;
            }
            der.truncate(length);
            let _ = parse(&der);
        }
    }

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

    fn certificate_certificate_resolver(names: &[&str]) -> Certificate {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(names).unwrap();
        Certificate::from_pem(&cert.pem(), &signing_key.serialize_pem()).unwrap()
    }

    #[test]
    fn an_exact_name_wins_over_a_wildcard() {
        let certificates = [
            certificate_certificate_resolver(&["*.a.test", "a.test"]),
            certificate_certificate_resolver(&["b.a.test"]),
            certificate_certificate_resolver(&["a.test"]),
        ];
        let choice = CertificateResolver::new(&certificates);
        let check = |name: &str, expected: &[usize]| {
            let chosen = choice.for_host(name);
            assert_eq!(chosen.len(), expected.len(), "{name}");
            for (chosen, expected) in chosen.iter().zip(expected) {
                assert!(Arc::ptr_eq(chosen, &certificates[*expected].certified), "{name}");
            }
        };
        check("b.a.test", &[1]);
        check("B.A.TEST", &[1]);
        check("b.a.test.", &[1]);
        check("c.a.test", &[0]);
        check("a.test", &[0, 2]);
        check("d.c.a.test", &[]);
        check("test", &[]);
    }

    fn example_certificate(name: &str) -> (String, String) {
        let CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        (cert.pem(), signing_key.serialize_pem())
    }

    #[test]
    fn a_certificate_and_its_key_belong_together() {
        let (chain, key) = example_certificate("a.test");
        let certificate = Certificate::from_pem(&chain, &key).unwrap();
        assert!(certificate.names.contains(&"a.test".to_owned()), "{:?}", certificate.names);
        let together = format!("{key}{chain}");
        assert_eq!(Certificate::from_pem(&together, &together).unwrap(), certificate);
    }

    #[track_caller]
    fn check_certificate(chain: &str, key: &str, expected: InvalidCertificate) {
        assert_eq!(Certificate::from_pem(chain, key).unwrap_err(), expected);
    }

    #[test]
    fn certificates_that_cannot_be_served_are_refused() {
        use InvalidCertificate::*;
        let (chain, key) = example_certificate("a.test");
        check_certificate(&chain, &KeyPair::generate().unwrap().serialize_pem(), Mismatch);
        check_certificate("", &key, NoCertificate);
        check_certificate(&key, &key, NoCertificate);
        check_certificate("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", &key, Malformed);
        check_certificate("-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n", &key, Malformed);
        check_certificate(&chain, "", NoKey);
        check_certificate(&chain, &chain, NoKey);
        let label = |name: &str| key.replace("PRIVATE KEY", name);
        check_certificate(&chain, &label("ENCRYPTED PRIVATE KEY"), EncryptedKey);
        check_certificate(&chain, "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n", UnsupportedKey);
    }
}
