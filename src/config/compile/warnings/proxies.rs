//! Trusted proxies that are whole private ranges, Unix sockets whose clients would all be one, and addresses of the gateway itself.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;

use crate::config::compile::document::Compiler;
use crate::config::compile::upstreams::server_url;
use crate::config::raw::server::Listen;
use crate::config::raw::{Document, Spanned, Text};
use crate::listen::ListenAddress;
use crate::upstream::Location;
use crate::upstream::server::bare_host;

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

// Servers that are a listener of this gateway: a request would come back to it without end.

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

    /// Only proxies connect to a Unix socket.
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

impl Compiler {
    /// A request that the gateway sends to itself is sent again and again, until a bound of the process ends it; one that it sends
    /// to its admin listener commands it.
    pub(super) fn warn_of_loops(&mut self, document: &Document) {
        let listeners = listeners(document).iter().filter(|listener| listener.forwards());
        let addresses: Vec<&ListenAddress> = listeners.filter_map(|it| Some(&it.address()?.value)).collect();
        let admin = admin(document).map(|admin| ListenAddress::from(admin.value));
        for text in servers(document) {
            let Some(server) = server_address(&text.value) else { continue };
            if let Some(own) = addresses.iter().find(|listener| reaches(&server, listener)) {
                let message = format!("`{}` is this gateway itself, which listens on `{own}`", text.value);
                let help = "write where the application listens: requests would come back here without end";
                self.mistakes.warn(text.at, message, help);
            }
            if let Some(admin) = admin.as_ref().filter(|admin| reaches(&server, admin)) {
                let message = format!("`{}` is the admin listener of this gateway, on `{admin}`", text.value);
                let help = "write where the application listens: whoever sends requests here would see and command the gateway";
                self.mistakes.warn(text.at, message, help);
            }
        }
    }

    /// A listener for every address of the machine takes those of all others with its port.
    pub(super) fn warn_of_overlaps(&mut self, document: &Document) {
        let ip = |address: &Spanned<ListenAddress>| Some((address.at, address.value.ip()?));
        let listening = listeners(document).iter().filter_map(|listener| ip(listener.address()?));
        let all: Vec<_> = listening.chain(admin(document).map(|admin| (admin.at, admin.value))).collect();
        for (place, (at, one)) in all.iter().enumerate() {
            if let Some((before, other)) = all[..place].iter().find(|(_, other)| overlap(*one, *other)) {
                let message = format!("`{one}` and `{other}` at line {} cannot both be listened on", before.line);
                let help = "choose another port, or write one of them: `0.0.0.0` is every address of this machine";
                self.mistakes.warn(*at, message, help);
            }
        }
    }
}

fn admin(document: &Document) -> Option<&Spanned<SocketAddr>> {
    document.admin.get()?.address.get()
}

/// Whether one of two different addresses is every address of the other's kind, with the same port.
fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let is_one_all = one.ip().is_unspecified() != other.ip().is_unspecified();
    is_one_all && one.port() != 0 && one.port() == other.port() && one.is_ipv4() == other.is_ipv4()
}

/// Every text that may be the URL of a server.
fn servers(document: &Document) -> impl Iterator<Item = &Text> {
    let named = document.upstreams.get().into_iter().flat_map(|upstreams| &upstreams.entries);
    let named = named.filter_map(|(_, upstream)| upstream.servers.get()).flat_map(|servers| &servers.items);
    let routes = document.routes.get().into_iter().flat_map(|routes| &routes.items);
    let routes = routes.filter_map(|route| route.upstream.get());
    document.upstream.get().into_iter().chain(named).chain(routes)
}

/// Where a server is, if its URL says so by itself.
fn server_address(url: &str) -> Option<ListenAddress> {
    let server = server_url(url).ok()?;
    let usual = if server.verified_as.is_some() { 443 } else { 80 };
    let authority = match &server.location {
        Location::Authority(authority) => authority,
        Location::UnixSocket(name) => return name.parse().ok(),
    };
    let host = bare_host(authority);
    let address = if host == "localhost" { IpAddr::from([127, 0, 0, 1]) } else { host.parse().ok()? };
    Some(SocketAddr::new(address, authority.port_u16().unwrap_or(usual)).into())
}

/// Whether a connection to this address arrives at a listener. Loopback is the only address of the machine that is
/// known here.
fn reaches(server: &ListenAddress, listener: &ListenAddress) -> bool {
    let (Some(server), Some(listener)) = (server.ip(), listener.ip()) else { return server == listener };
    let is_local = server.ip().is_loopback() || server.ip().is_unspecified();
    server.port() == listener.port() && (server.ip() == listener.ip() || listener.ip().is_unspecified() && is_local)
}
