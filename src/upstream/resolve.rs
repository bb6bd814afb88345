//! Looks up the names of servers at intervals, and adds and removes servers as the addresses change.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::time::sleep;
use tracing::info;
use tracing::warn;

use super::address::ServerAddress;
use super::server::Server;
use super::servers::Upstream;
use super::settings::ServerUrl;
use crate::timer::peer_timeout;

/// Looks up every name among the servers at intervals. Returns at once if there is none.
///
/// Every address is a server. When an address disappears its server gets no further requests, and ends those it has.
/// While a name cannot be looked up its servers stay.
pub(super) async fn resolve_forever(upstream: &Upstream) {
    let is_name = |url: &&ServerUrl| matches!(ServerAddress::of(url), ServerAddress::Name { .. });
    let mut is_failing = false;
    while upstream.settings.servers.iter().any(|url| is_name(&url)) {
        let mut failure = None;
        for url in upstream.settings.servers.iter().filter(is_name) {
            match look_up(url).await {
                Ok(addresses) => upstream.set_addresses(url, &addresses),
                Err(error) => failure = Some((url, error)),
            }
        }
        match &failure {
            Some((url, error)) if !is_failing => {
                let (upstream, server) = (&upstream.settings.name, url.name());
                warn!(%upstream, %server, %error, "cannot look up the name of a server, keeping its last addresses");
            }
            None if is_failing => {
                info!(upstream = %upstream.settings.name, "the names of all servers can be looked up again");
            }
            Some(_) | None => {}
        }
        is_failing = failure.is_some();
        sleep(INTERVAL).await;
    }
}

async fn look_up(url: &ServerUrl) -> io::Result<Vec<SocketAddr>> {
    let ServerAddress::Name { host, port } = ServerAddress::of(url) else { return Ok(Vec::new()) };
    let found = peer_timeout(TIMEOUT, pin!(lookup_host((host.as_str(), port)))).await;
    let mut addresses: Vec<SocketAddr> = found.map_err(|_| io::ErrorKind::TimedOut)??.collect();
    // Sorted: name servers rotate the list with every look-up.
    addresses.sort_unstable();
    addresses.dedup();
    if addresses.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
    }
    Ok(addresses)
}

impl Upstream {
    /// Makes these addresses the servers of a name. Servers whose address stays are kept.
    fn set_addresses(&self, url: &ServerUrl, addresses: &[SocketAddr]) {
        let before = self.servers();
        let mut of_name = before.iter().filter(|server| server.url == *url);
        if of_name.clone().count() == addresses.len()
            && of_name.all(|server| server.resolved().is_some_and(|address| addresses.contains(&address)))
        {
            return;
        }
        let mut servers: Vec<Arc<Server>> = Vec::with_capacity(before.len() + addresses.len());
        for known in &self.settings.servers {
            let of_name = before.iter().filter(|server| server.url == *known);
            if known != url {
                servers.extend(of_name.cloned());
                continue;
            }
            servers.extend(addresses.iter().map(|address| {
                let kept = of_name.clone().find(|server| server.resolved() == Some(*address));
                kept.map_or_else(|| self.new_server(url, ServerAddress::Address(*address)), Arc::clone)
            }));
        }
        let (upstream, server) = (&self.settings.name, url.name());
        info!(%upstream, %server, ?addresses, "a server's name has these addresses now");
        self.replace_servers(servers);
    }
}

/// How soon a changed address is noticed.
const INTERVAL: Duration = Duration::from_secs(3);

/// A look-up that takes longer has failed.
const TIMEOUT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use http::uri::Authority;

    use super::*;
    use crate::upstream::Balance;
    use crate::upstream::HeadBounds;
    use crate::upstream::HostHeader;
    use crate::upstream::ServerVerification;
    use crate::upstream::Settings;
    use crate::upstream::Timeouts;

    fn location(authority: &str) -> ServerUrl {
        authority.parse::<Authority>().unwrap().into()
    }

    fn check(upstream: &Upstream, expected: &[&str]) {
        let servers = upstream.servers();
        let found: Vec<String> = servers
            .iter()
            .map(|server| server.resolved().map_or_else(|| "?".to_owned(), |address| address.to_string()))
            .collect();
        assert_eq!(found, expected);
        assert!(servers.iter().all(|server| **server.name() == *server.url.name()));
    }

    #[test]
    fn new_addresses_are_servers_and_those_that_stay_are_the_same_ones() {
        let upstream = Upstream::new(Settings {
            name: "app".into(),
            servers: vec![location("10.0.0.9:80"), location("app.internal:80")],
            balance: Balance::RoundRobin,
            host: HostHeader::Preserve,
            timeouts: Timeouts::default(),
            heads: HeadBounds::default(),
            health: None,
            tls: ServerVerification::default(),
            http2: false,
            max_idle: None,
        });
        let addresses = |all: &[&str]| -> Vec<SocketAddr> { all.iter().map(|one| one.parse().unwrap()).collect() };
        check(&upstream, &["10.0.0.9:80", "?"]);
        upstream.set_addresses(&location("app.internal:80"), &addresses(&["10.0.0.1:80", "10.0.0.2:80"]));
        check(&upstream, &["10.0.0.9:80", "10.0.0.1:80", "10.0.0.2:80"]);
        let before = upstream.servers();
        upstream.set_addresses(&location("app.internal:80"), &addresses(&["10.0.0.2:80", "10.0.0.3:80"]));
        check(&upstream, &["10.0.0.9:80", "10.0.0.2:80", "10.0.0.3:80"]);
        assert!(Arc::ptr_eq(&before[2], &upstream.servers()[1]));
        let before = upstream.servers();
        upstream.set_addresses(&location("app.internal:80"), &addresses(&["10.0.0.2:80", "10.0.0.3:80"]));
        assert!(Arc::ptr_eq(&before, &upstream.servers()));
    }
}
