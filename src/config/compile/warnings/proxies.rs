//! Trusted proxies that are whole private ranges, and Unix sockets whose clients would all be one.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::config::compile::compiler::Compiler;
use crate::config::raw::Document;
use crate::config::raw::Spanned;
use crate::config::raw::server::Listen;

impl Compiler {
    /// A private range holds more machines than the proxies, and each of them may claim any client address.
    pub(super) fn warn_of_proxies(&mut self, document: &Document) {
        let mut addresses = listeners(document).iter().filter_map(|listener| listener.address()?.value.ip());
        let Some(public) = addresses.find(|address| is_public(address.ip())) else { return };
        for network in trusted_proxies(document) {
            let ranges = PRIVATE.iter().filter_map(|range| range.parse::<IpNet>().ok());
            if ranges.into_iter().any(|range| network.value.contains(&range)) {
                let message = format!(
                    "`{}` trusts a whole private range, and `{public}` is reachable from outside: any machine in that range may claim to be any client",
                    network.value
                );
                let help =
                    "name only the proxies, such as `10.0.0.10`, or listen on an address that only they can reach";
                self.mistakes.warn(network.at, message, help);
            }
        }
    }

    /// Whoever connects to a Unix socket is a proxy for others.
    pub(super) fn warn_of_unix_sockets(&mut self, document: &Document) {
        let this_machine = IpAddr::from([127, 0, 0, 1]);
        if trusted_proxies(document).iter().any(|network| network.value.contains(&this_machine)) {
            return;
        }
        let forwarding = listeners(document).iter().filter(|listener| listener.forwards()).filter_map(Listen::address);
        for socket in forwarding.filter(|address| address.value.ip().is_none()) {
            let message = format!(
                "what connects to `{}` counts as 127.0.0.1, which is no trusted proxy: all clients behind it are counted as one",
                socket.value
            );
            let help =
                "add `client_ip: {trusted_proxies: [127.0.0.1]}`, so that the forwarding header of the proxy counts";
            self.mistakes.warn(socket.at, message, help);
        }
    }
}

fn listeners(document: &Document) -> &[Listen] {
    document.listen.get().map(|listen| &listen.items[..]).unwrap_or_default()
}

fn trusted_proxies(document: &Document) -> &[Spanned<IpNet>] {
    let proxies = document.client_ip.get().and_then(|client| client.trusted_proxies.get());
    proxies.map(|proxies| &proxies.items[..]).unwrap_or_default()
}

/// Whether machines outside private networks may connect there.
fn is_public(address: IpAddr) -> bool {
    let mut ranges = PRIVATE.iter().filter_map(|range| range.parse::<IpNet>().ok());
    let address = address.to_canonical();
    !address.is_loopback() && !ranges.any(|range| range.contains(&address))
}

/// Private ranges (RFC 1918, 3927, 4193, 4291, 6598). `fd00::/8` is the half of `fc00::/7` that is in use.
const PRIVATE: [&str; 8] = [
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "100.64.0.0/10",
    "169.254.0.0/16",
    "fc00::/7",
    "fd00::/8",
    "fe80::/10",
];
