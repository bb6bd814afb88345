//! Which certificate a client is shown.

use std::collections::HashMap;
use std::sync::Arc;

use rustls::server::ClientHello;
use rustls::server::ResolvesServerCert;
use rustls::sign::CertifiedKey;

use super::Certificate;

/// The certificates of a listener by name.
#[derive(Debug)]
pub(super) struct Choice {
    exact: HashMap<String, Vec<Arc<CertifiedKey>>>,
    /// By what follows `*.`.
    wildcard: HashMap<String, Vec<Arc<CertifiedKey>>>,
    /// For whoever names nobody, or nobody that is known.
    first: Option<Arc<CertifiedKey>>,
}

impl Choice {
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
        let first = certificates.first().map(|certificate| Arc::clone(&certificate.certified));
        Self { exact, wildcard, first }
    }

    /// Those for a name: of its own, or of all names beside it.
    fn of_name(&self, name: &str) -> &[Arc<CertifiedKey>] {
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let beside = || self.wildcard.get(name.split_once('.')?.1);
        self.exact.get(&name).or_else(beside).map_or(&[], Vec::as_slice)
    }
}

impl ResolvesServerCert for Choice {
    fn resolve(&self, client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let named = client.server_name().map_or(&[][..], |name| self.of_name(name));
        // One name may have a certificate of each kind: the first that this client can verify.
        let suits = |certified: &&Arc<CertifiedKey>| certified.key.choose_scheme(client.signature_schemes()).is_some();
        named.iter().find(suits).or(named.first()).or(self.first.as_ref()).cloned()
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
    fn a_name_has_its_own_certificate_before_that_of_all_names_beside_it() {
        let certificates = [certificate(&["*.a.test", "a.test"]), certificate(&["b.a.test"]), certificate(&["a.test"])];
        let choice = Choice::new(&certificates);
        let check = |name: &str, expected: &[usize]| {
            let chosen = choice.of_name(name);
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
