//! Servers that are a listener of this gateway: a request would come back to it without end.

use std::net::IpAddr;
use std::net::SocketAddr;

use crate::config::compile::compiler::Compiler;
use crate::config::compile::server_url::server_url;
use crate::config::raw::Document;
use crate::config::raw::Text;
use crate::listen::ListenAddress;
use crate::upstream::Location;
use crate::upstream::address::bare_host;

impl Compiler {
    /// A request that the gateway sends to itself is sent again and again, until a bound of the process ends it.
    pub(super) fn warn_of_loops(&mut self, document: &Document) {
        let listeners = document.listen.get().map(|listen| &listen.items[..]).unwrap_or_default();
        let addresses: Vec<&ListenAddress> =
            listeners.iter().filter(|it| it.forwards()).filter_map(|it| Some(&it.address()?.value)).collect();
        for text in servers(document) {
            let own = server_address(&text.value)
                .and_then(|server| addresses.iter().find(|listener| reaches(&server, listener)));
            if let Some(own) = own {
                let message = format!("`{}` is this gateway itself, which listens on `{own}`", text.value);
                let help = "write where the application listens: requests would come back here without end";
                self.mistakes.warn(text.at, message, help);
            }
        }
    }
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

/// Whether a connection to this address arrives at a listener. Of a machine's addresses only its loopback is known here.
fn reaches(server: &ListenAddress, listener: &ListenAddress) -> bool {
    let (Some(server), Some(listener)) = (server.ip(), listener.ip()) else { return server == listener };
    let is_local = server.ip().is_loopback() || server.ip().is_unspecified();
    server.port() == listener.port() && (server.ip() == listener.ip() || listener.ip().is_unspecified() && is_local)
}
