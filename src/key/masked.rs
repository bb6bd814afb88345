//! Keys as people may see them: which selectors, and of the values no more than tells one from another.

use std::net::IpAddr;

use ipnet::IpNet;

use super::Key;
use super::KeySpec;
use super::Selector;

/// A key that can be shown, and cannot be used.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Masked {
    /// Each selector, and its value masked.
    pub parts: Vec<(String, String)>,
    /// The network in clear, where the key is the address of a client and nothing else.
    pub address: Option<IpNet>,
}

impl Masked {
    /// `key` is one of `spec`: as many parts, in the same order.
    pub fn of(spec: &KeySpec, key: &Key) -> Self {
        let mut masked = Self::default();
        for (part, value) in spec.parts.iter().zip(key.parts()) {
            let shown = match &part.selector {
                Selector::ClientIp(_) => {
                    let network = network(value);
                    masked.address = network.filter(|_| spec.parts.len() == 1);
                    network.map(mask_network).unwrap_or_default()
                }
                // Whoever knows these may use them.
                Selector::Bearer | Selector::Cookie(_) | Selector::Header(_) => mask(value, 0),
                // No value of a client's own.
                Selector::Host | Selector::Method | Selector::Path | Selector::Route => {
                    String::from_utf8_lossy(value).into_owned()
                }
                _ => mask(value, 1),
            };
            masked.parts.push((part.selector.to_string(), shown));
        }
        masked
    }
}

/// The first letters and three asterisks, however long it is; nothing of what is empty.
fn mask(value: &[u8], letters: usize) -> String {
    if value.is_empty() {
        return String::new();
    }
    let text = String::from_utf8_lossy(value);
    let start: String = text.chars().filter(|letter| !letter.is_control()).take(letters).collect();
    format!("{start}***")
}

/// The net of a `client_ip` in a key: the length of its prefix, then its address.
fn network(value: &[u8]) -> Option<IpNet> {
    let (prefix, octets) = value.split_first()?;
    let (address, bits) = match octets.len() {
        4 => (IpAddr::from(<[u8; 4]>::try_from(octets).ok()?), 32),
        16 => (IpAddr::from(<[u8; 16]>::try_from(octets).ok()?), 128),
        _ => return None,
    };
    IpNet::new(address, (*prefix).min(bits)).ok()
}

/// `198.51.*.*` or `2001:db8:*`
fn mask_network(network: IpNet) -> String {
    match network.network() {
        IpAddr::V4(address) => {
            let [a, b, ..] = address.octets();
            format!("{a}.{b}.*.*")
        }
        IpAddr::V6(address) => {
            let [a, b, ..] = address.segments();
            format!("{a:x}:{b:x}:*")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::ClientIp;
    use crate::client::Prefix;
    use crate::key::KeyPart;
    use crate::key::extract::encode;

    #[track_caller]
    fn check(parts: &[(&str, &[u8])], expected: &[(&str, &str)], address: Option<&str>) {
        let mut key = Key::default();
        let mut spec = KeySpec::default();
        for (selector, value) in parts {
            spec.parts.push(KeyPart { selector: selector.parse().unwrap(), raw: false });
            key.push(value);
        }
        let Masked { parts, address: shown } = Masked::of(&spec, &key);
        let parts: Vec<_> = parts.iter().map(|(selector, value)| (&**selector, &**value)).collect();
        assert_eq!((parts, shown), (expected.to_vec(), address.map(|address| address.parse().unwrap())));
    }

    fn ip(address: &str, v4: u8) -> Vec<u8> {
        encode(Prefix { v4, v6: 64 }, ClientIp::new(address.parse().unwrap())).to_vec()
    }

    #[test]
    fn names_keep_their_first_letter_and_secrets_nothing() {
        check(&[("param.username", b"alice")], &[("param.username", "a***")], None);
        check(&[("param.username", "élise".as_bytes())], &[("param.username", "é***")], None);
        check(&[("param.username", b"")], &[("param.username", "")], None);
        check(&[("bearer", b"abc"), ("cookie.s", b"x")], &[("bearer", "***"), ("cookie.s", "***")], None);
        check(&[("path", b"/login")], &[("path", "/login")], None);
        check(&[], &[], None);
    }

    #[test]
    fn an_address_is_masked_and_known_in_clear_where_it_is_the_whole_key() {
        check(&[("client_ip", &ip("198.51.100.7", 32))], &[("client_ip", "198.51.*.*")], Some("198.51.100.7/32"));
        check(&[("client_ip", &ip("198.51.100.7", 24))], &[("client_ip", "198.51.*.*")], Some("198.51.100.0/24"));
        check(&[("client_ip", &ip("2001:db8:1:2::9", 32))], &[("client_ip", "2001:db8:*")], Some("2001:db8:1:2::/64"));
        let both = [("client_ip", "198.51.*.*"), ("param.username", "b***")];
        check(&[("client_ip", &ip("198.51.100.7", 32)), ("param.username", b"bob")], &both, None);
    }
}
