//! Trusted proxies that are whole private ranges.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::config::compile::compiler::Compiler;
use crate::config::raw::Document;
use crate::config::raw::server::Listen;

impl Compiler {
    /// A private range holds more machines than the proxies, and each of them may claim any client address.
    pub(super) fn warn_of_proxies(&mut self, document: &Document) {
        let listeners = document.listen.get().map(|listen| &listen.items[..]).unwrap_or_default();
        let addresses = listeners.iter().filter_map(|entry| match entry {
            Listen::Address(address) => Some(address.value),
            Listen::Listener(listener) => Some(listener.address.get()?.value),
        });
        let Some(public) = addresses.into_iter().find(|address| is_public(address.ip())) else { return };
        let proxies = document.client_ip.get().and_then(|client| client.trusted_proxies.get());
        for network in proxies.map(|proxies| &proxies.items[..]).unwrap_or_default() {
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
