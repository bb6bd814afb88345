//! How many bits of an address make one client.

use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;

use super::ClientIp;

/// How many leading bits of an address make one client. `v4` is at most 32 and `v6` at most 128. More means all bits.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Prefix {
    pub v4: u8,
    pub v6: u8,
}

impl Default for Prefix {
    fn default() -> Self {
        Self { v4: 32, v6: 64 }
    }
}

impl Prefix {
    /// The network address that the client is counted under.
    pub fn cut(self, client: ClientIp) -> IpAddr {
        match client.address() {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32_u32.saturating_sub(self.v4.into())).unwrap_or(0);
                Ipv4Addr::from_bits(address.to_bits() & mask).into()
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128_u32.saturating_sub(self.v6.into())).unwrap_or(0);
                Ipv6Addr::from_bits(address.to_bits() & mask).into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check((v4, v6): (u8, u8), client: &str, expected: &str) {
        let client = ClientIp::new(client.parse().expect("the test names an address"));
        assert_eq!(Prefix { v4, v6 }.cut(client).to_string(), expected);
    }

    #[test]
    fn an_address_is_cut_to_the_prefix_of_its_family() {
        check((32, 64), "198.51.100.7", "198.51.100.7");
        check((24, 64), "198.51.100.7", "198.51.100.0");
        check((23, 64), "198.51.101.7", "198.51.100.0");
        check((0, 64), "198.51.100.7", "0.0.0.0");
        check((32, 64), "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::");
        check((32, 48), "2001:db8:1:2:3:4:5:6", "2001:db8:1::");
        check((32, 128), "2001:db8::1", "2001:db8::1");
        check((32, 0), "2001:db8::1", "::");
    }

    #[test]
    fn a_mapped_address_is_cut_as_the_ipv4_address_it_is() {
        check((24, 64), "::ffff:198.51.100.7", "198.51.100.0");
    }

    #[test]
    fn a_prefix_longer_than_the_address_keeps_all_of_it() {
        check((200, 200), "198.51.100.7", "198.51.100.7");
        check((200, 200), "2001:db8::1", "2001:db8::1");
    }
}
