//! The addresses of clients in the key of a ban, encrypted under the keys that gateways share.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use crate::base64;
use crate::signing::KeyRing;
use crate::store::random::random_bytes;

/// The encrypted networks of a key, as text.
///
/// They open only for the ban that they were sealed for. The length tells of IPv4 and IPv6, as the mask of the key does, and
/// nothing else.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::store) struct SealedNetworks(Arc<str>);

/// What is longer was written by no gateway: a network takes some 20 bytes.
const LONGEST: usize = 1024;

const PURPOSE: &str = "addresses in bans";

impl SealedNetworks {
    /// `networks` with the places of their parts in the key; `ban` is the id of the ban. `None`: there are no networks.
    pub(super) fn seal(networks: &[(usize, IpNet)], ban: u128, ring: &KeyRing) -> Option<Self> {
        if networks.is_empty() {
            return None;
        }
        let networks: Vec<(usize, IpAddr, u8)> =
            networks.iter().map(|(place, network)| (*place, network.network(), network.prefix_len())).collect();
        let text = postcard::to_stdvec(&networks).expect("memory has room for a few bytes");
        Self::read(base64::encode(&ring.seal(PURPOSE, &ban.to_be_bytes(), &random_bytes(), &text)))
    }

    /// `None`: it was changed, it belongs to another ban, or its key is not on this ring.
    pub(super) fn open(&self, ban: u128, ring: &KeyRing) -> Option<Vec<(usize, IpNet)>> {
        let text = ring.open(PURPOSE, &ban.to_be_bytes(), &base64::decode(self.0.as_bytes()))?;
        let networks: Vec<(usize, IpAddr, u8)> = postcard::from_bytes(&text).ok()?;
        let network = |(place, address, prefix)| Some((place, IpNet::new(address, prefix).ok()?));
        networks.into_iter().map(network).collect()
    }

    pub(super) fn read(text: String) -> Option<Self> {
        (text.len() <= LONGEST).then(|| Self(text.into()))
    }

    pub(super) fn into_text(self) -> String {
        self.0.as_ref().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::signing::KeySeed;

    fn ring(secret: u8) -> KeyRing {
        KeyRing::new(KeySeed { made: Timestamp::EPOCH, secret: [secret; 32] })
    }

    fn networks(all: &[(usize, &str)]) -> Vec<(usize, IpNet)> {
        all.iter().map(|(place, text)| (*place, text.parse().expect("a network"))).collect()
    }

    #[test]
    fn only_a_gateway_with_the_key_opens_it_and_only_for_this_ban() {
        for all in [
            networks(&[(0, "198.51.100.7/32")]),
            networks(&[(1, "198.51.100.0/24"), (2, "198.51.100.7/32")]),
            networks(&[(0, "2001:db8:1:2::/64")]),
        ] {
            let sealed = SealedNetworks::seal(&all, 7, &ring(1)).expect("there is one");
            assert_eq!(sealed.open(7, &ring(1)), Some(all));
            assert_eq!((sealed.open(8, &ring(1)), sealed.open(7, &ring(2))), (None, None));
            let bytes = base64::decode(sealed.0.as_bytes());
            assert!(!bytes.windows(3).any(|three| [&[198, 51, 100][..], b"198", &[0x0d, 0xb8, 0]].contains(&three)));
        }
        assert_eq!(SealedNetworks::seal(&[], 7, &ring(1)), None);
    }

    #[test]
    fn the_length_says_nothing_of_the_address() {
        let length = |text| SealedNetworks::seal(&networks(&[(0, text)]), 7, &ring(1)).expect("one").0.len();
        assert_eq!(length("10.0.0.1/32"), length("198.51.100.177/32"));
        assert_eq!(length("2001:db8::/64"), length("2001:db8:1234:5678::/64"));
    }

    #[test]
    fn what_no_gateway_has_sealed_is_not_opened() {
        assert_eq!(SealedNetworks::read("A".repeat(LONGEST + 1)), None);
        for text in ["", "A", "=", "not base64 \u{fffd}", &"A".repeat(LONGEST)] {
            assert_eq!(SealedNetworks::read(text.to_owned()).and_then(|sealed| sealed.open(7, &ring(1))), None);
        }
    }
}
