//! One canonical host for all its spellings.

use std::borrow::Cow;
use std::net::Ipv6Addr;

/// A host in lower case, without port and final dot. An IPv6 address keeps its brackets and has one spelling.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CanonicalHost<'r>(Cow<'r, str>);

impl<'r> CanonicalHost<'r> {
    pub fn new(authority: &'r str) -> Self {
        // Nearly all hosts are canonical as they come.
        if authority.bytes().fold(true, |all, byte| all & PLAIN[usize::from(byte)]) && !authority.ends_with('.') {
            return Self(Cow::Borrowed(authority));
        }
        let host = authority.rsplit('@').next().unwrap_or_default().trim();
        let colons = host.bytes().filter(|byte| *byte == b':').count();
        if let Some(address) = if colons > 1 { ipv6(host) } else { None } {
            let canonical = format!("[{address}]");
            return Self(match host.get(..canonical.len()) {
                Some(sent) if sent == canonical => Cow::Borrowed(sent),
                _ => Cow::Owned(canonical),
            });
        }
        let host = host.split(':').next().unwrap_or_default();
        let host = host.trim_end_matches(|char: char| char == '.' || char.is_whitespace());
        if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Self(Cow::Owned(host.to_ascii_lowercase()))
        } else {
            Self(Cow::Borrowed(host))
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The bytes of a host that is canonical as it comes.
const PLAIN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128_u8 {
        table[byte as usize] = matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
        byte += 1;
    }
    table
};

/// The address of an IPv6 literal, with or without brackets and zone.
fn ipv6(host: &str) -> Option<Ipv6Addr> {
    let literal = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host,
    };
    literal.split('%').next().unwrap_or_default().parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(authority: &str, expected: &str) {
        assert_eq!(CanonicalHost::new(authority).as_str(), expected, "{authority:?}");
    }

    #[test]
    fn every_spelling_of_a_host_is_one_host() {
        check("example.com", "example.com");
        check("Example.COM", "example.com");
        check("example.com:8080", "example.com");
        check("example.com:", "example.com");
        check("example.com.", "example.com");
        check("EXAMPLE.com.:443", "example.com");
        check(" example.com ", "example.com");
        check("user@example.com:80", "example.com");
        check("127.0.0.1:80", "127.0.0.1");
        check("[::1]", "[::1]");
        check("[::1]:8080", "[::1]");
        check("::1", "[::1]");
        check("[2001:DB8:0::1]:80", "[2001:db8::1]");
        check("[fe80::1%25eth0]:80", "[fe80::1]");
        check("", "");
        check(":80", "");
    }

    #[test]
    fn a_canonical_host_is_borrowed() {
        for authority in ["example.com", "example.com:8080", "example.com.", "[::1]:80"] {
            assert!(matches!(CanonicalHost::new(authority), CanonicalHost(Cow::Borrowed(_))), "{authority:?}");
        }
    }

    proptest! {
        #[test]
        fn a_canonical_host_is_its_own_canonical_host(authority in "[a-zA-Z0-9:.@%\\[\\] -]{0,30}|.*") {
            let once = CanonicalHost::new(&authority);
            let twice = CanonicalHost::new(once.as_str());
            prop_assert_eq!(twice.as_str(), once.as_str());
        }
    }
}
