//! The `client_ip` section.

use ipnet::IpNet;

use super::Spanned;
use super::Text;
use super::forms::OneOrMany;
use super::section;

section! {
    /// Who asks: which proxies are believed, and how wide a net one client is.
    ClientIp {
        /// Networks of the proxies in front, whose forwarding header is believed. Left out: none.
        trusted_proxies: OneOrMany<Spanned<IpNet>>,
        /// The header in which they say who asks: `x-forwarded-for`, `forwarded`, or a header of one address such as `cf-connecting-ip`.
        header: Text,
        /// IPv4 clients are counted by so many leading bits. Default: 32.
        ipv4_prefix: Spanned<u64>,
        /// IPv6 clients are counted by so many leading bits. Default: 64.
        ipv6_prefix: Spanned<u64>,
    }
}
