//! Reads the fields of a certificate that serving it needs: its names, its validity and its public key.
//!
//! These are the operator's own certificates. Clients verify them, not we.

use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;

use jiff::Timestamp;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;
use x509_parser::time::ASN1Time;

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rcgen::CertificateParams;
    use rcgen::DnType;
    use rcgen::KeyPair;
    use rcgen::PublicKeyData;
    use rcgen::date_time_ymd;

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
}
