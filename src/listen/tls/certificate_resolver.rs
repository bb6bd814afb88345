//! Chooses the certificate that a client gets.

use std::collections::HashMap;
use std::sync::Arc;

use rustls::server::ClientHello;
use rustls::server::ResolvesServerCert;
use rustls::sign::CertifiedKey;

use super::certificate::Certificate;

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

    /// The certificates for a host: those with its exact name, otherwise those with a wildcard.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(names: &[&str]) -> Certificate {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let rcgen::CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(names).unwrap();
        Certificate::from_pem(&cert.pem(), &signing_key.serialize_pem()).unwrap()
    }

    #[test]
    fn an_exact_name_wins_over_a_wildcard() {
        let certificates = [certificate(&["*.a.test", "a.test"]), certificate(&["b.a.test"]), certificate(&["a.test"])];
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
}
