//! The few facts of a certificate that serving it takes: whose it is, from when to when, and for which key.
//!
//! Certificates are the operator's own, and nothing is verified here: that is for those who are shown them.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// What a certificate says of itself.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Facts<'d> {
    /// Lower-case DNS names, some of them `*.example.com`: its alternative names and its common name.
    pub(super) names: Vec<String>,
    pub(super) begins: Timestamp,
    pub(super) expires: Timestamp,
    /// As it stands there, in DER.
    pub(super) public_key: &'d [u8],
}

/// Reads a certificate in DER; `None`: it is none.
pub(super) fn read(der: &[u8]) -> Option<Facts<'_>> {
    let mut to_be_signed = Elements(Elements(der).expect(SEQUENCE)?).inside(SEQUENCE)?;
    to_be_signed.skip(VERSION);
    to_be_signed.expect(INTEGER)?;
    // The algorithm of the signature, and who signed.
    to_be_signed.expect(SEQUENCE)?;
    to_be_signed.expect(SEQUENCE)?;
    let mut validity = to_be_signed.inside(SEQUENCE)?;
    let (begins, expires) = (time(validity.next()?)?, time(validity.next()?)?);
    let subject = to_be_signed.inside(SEQUENCE)?;
    let public_key = to_be_signed.next().filter(|element| element.tag == SEQUENCE)?.whole;
    let mut names = Vec::new();
    while let Some(element) = to_be_signed.next() {
        if element.tag == EXTENSIONS {
            let mut extensions = Elements(element.content).inside(SEQUENCE)?;
            while let Some(extension) = extensions.next() {
                alternative_names(extension.content, &mut names);
            }
        }
    }
    common_names(subject, &mut names);
    Some(Facts { names, begins, expires, public_key })
}

/// Adds the DNS names of an extension, if it is the one that has them.
fn alternative_names(extension: &[u8], names: &mut Vec<String>) -> Option<()> {
    let mut parts = Elements(extension);
    if parts.expect(OBJECT_IDENTIFIER)? != ALTERNATIVE_NAME {
        return None;
    }
    parts.skip(BOOLEAN);
    let mut alternatives = Elements(parts.expect(OCTET_STRING)?).inside(SEQUENCE)?;
    while let Some(name) = alternatives.next() {
        if name.tag == DNS_NAME {
            add(name.content, names);
        }
    }
    Some(())
}

/// Adds the names that stand where names stood before there were alternative ones.
fn common_names(mut subject: Elements<'_>, names: &mut Vec<String>) -> Option<()> {
    while let Some(set) = subject.next() {
        let mut attribute = Elements(set.content).inside(SEQUENCE)?;
        if attribute.expect(OBJECT_IDENTIFIER)? == COMMON_NAME {
            add(attribute.next()?.content, names);
        }
    }
    Some(())
}

fn add(name: &[u8], names: &mut Vec<String>) {
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._*".contains(byte);
    if name.iter().all(fits)
        && let Ok(name) = std::str::from_utf8(name)
    {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
}

/// `YYMMDDHHMMSSZ`, or with a year of four digits.
fn time(element: Element<'_>) -> Option<Timestamp> {
    let text = std::str::from_utf8(element.content).ok()?.strip_suffix('Z')?;
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (year, rest) = match element.tag {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year: i16 = year.parse().ok()?;
            (if year < 50 { year + 2000 } else { year + 1900 }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    let two = |position: usize| rest.get(position..position + 2)?.parse::<i8>().ok();
    let date = Date::new(year, two(0)?, two(2)?).ok()?;
    let moment = date.at(two(4)?.min(23), two(6)?.min(59), two(8)?.min(59), 0);
    moment.to_zoned(TimeZone::UTC).ok().map(|moment| moment.timestamp())
}

/// One element of DER.
#[derive(Clone, Copy, Debug)]
struct Element<'d> {
    tag: u8,
    content: &'d [u8],
    /// With its tag and its length.
    whole: &'d [u8],
}

/// Elements one after the other.
#[derive(Clone, Copy, Debug)]
struct Elements<'d>(&'d [u8]);

impl<'d> Elements<'d> {
    fn next(&mut self) -> Option<Element<'d>> {
        let (tag, first) = (*self.0.first()?, *self.0.get(1)?);
        let (length, start) = match first {
            0..=0x7f => (usize::from(first), 2),
            0x81..=0x84 => {
                let count = usize::from(first - 0x80);
                let digits = self.0.get(2..2 + count)?;
                (digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit)), 2 + count)
            }
            _ => return None,
        };
        let end = start.checked_add(length)?;
        let (whole, rest) = self.0.split_at_checked(end)?;
        self.0 = rest;
        Some(Element { tag, content: &whole[start..], whole })
    }

    /// The content of the next element, which must be of this kind.
    fn expect(&mut self, tag: u8) -> Option<&'d [u8]> {
        self.next().filter(|element| element.tag == tag).map(|element| element.content)
    }

    /// The elements inside the next one.
    fn inside(&mut self, tag: u8) -> Option<Self> {
        self.expect(tag).map(Self)
    }

    /// Passes over the next element if it is of this kind.
    fn skip(&mut self, tag: u8) {
        if self.0.first() == Some(&tag) {
            self.next();
        }
    }
}

const BOOLEAN: u8 = 0x01;
const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const DNS_NAME: u8 = 0x82;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;

/// 2.5.29.17
const ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1d, 0x11];
/// 2.5.4.3
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

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
        let mut params = CertificateParams::new(["A.example.com".to_owned(), "*.example.com".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "common.example.com");
        params.not_before = date_time_ymd(1999, 12, 31);
        params.not_after = date_time_ymd(2126, 2, 28);
        (params.self_signed(&key).unwrap().der().to_vec(), key.subject_public_key_info())
    }

    #[test]
    fn a_certificate_says_whose_it_is_from_when_to_when_and_for_which_key() {
        let (der, public_key) = example();
        let facts = read(&der).unwrap();
        assert_eq!(facts.names, ["a.example.com", "*.example.com", "common.example.com"]);
        assert_eq!(facts.begins.to_string(), "1999-12-31T00:00:00Z");
        assert_eq!(facts.expires.to_string(), "2126-02-28T00:00:00Z");
        assert_eq!(facts.public_key, public_key);
    }

    #[test]
    fn a_name_that_is_none_is_passed_over() {
        let mut names = Vec::new();
        for name in [&b"not a name"[..], b"", b".", b"\xff", b"a.test", b"A.test."] {
            add(name, &mut names);
        }
        assert_eq!(names, ["a.test"]);
    }

    proptest! {
        #[test]
        fn nothing_that_is_read_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }

        #[test]
        fn a_certificate_that_was_damaged_does_not_panic(at in 0..300_usize, byte: u8, length in 0..600_usize) {
            let (mut der, _) = example();
            if let Some(damaged) = der.get_mut(at) {
                *damaged = byte;
            }
            der.truncate(length);
            let _ = read(&der);
        }
    }
}
