//! The `client_ip` section.

use ipnet::IpNet;

use super::forms::OneOrList;
use super::section::section;
use super::value::Spanned;
use super::value::Text;

section! {
    /// How the gateway finds the address of a client.
    ClientIp {
        /// Addresses or networks of the proxies in front whose forwarding header the gateway believes. Default: none,
        /// so every forwarding header is ignored.
        trusted_proxies: OneOrList<Spanned<IpNet>>,
        /// The header in which a trusted proxy names the client: `x-forwarded-for` (default), `forwarded`, or a
        /// header that holds one address, such as `cf-connecting-ip`.
        header: Text,
        /// IPv4 clients are counted by this many leading bits of their address. Default: 32.
        ipv4_prefix: Spanned<u64>,
        /// IPv6 clients are counted by this many leading bits of their address. Default: 64.
        ipv6_prefix: Spanned<u64>,
    }
}
