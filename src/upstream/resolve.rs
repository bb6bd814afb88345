//! The addresses behind the names of servers, looked up again and again.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::time::sleep;
use tokio::time::timeout;
use tracing::info;
use tracing::warn;

use super::Server;
use super::ServerUrl;
use super::Upstream;
use super::server::ServerAddress;

/// Looks up every name among the servers, and goes on with it; returns at once where there is none.
///
/// Every address is a server. One that is gone gets no further requests, and ends those it has; while a name cannot be
/// looked up its servers stay.
pub(super) async fn resolve(upstream: &Upstream) {
    let named = |location: &&ServerUrl| matches!(ServerAddress::of(location), ServerAddress::Name { .. });
    let mut failing = false;
    while upstream.settings.servers.iter().any(|location| named(&location)) {
        let mut failed = None;
        for location in upstream.settings.servers.iter().filter(named) {
            match look_up(location).await {
                Ok(addresses) => upstream.take_over(location, &addresses),
                Err(error) => failed = Some((location, error)),
            }
        }
        match &failed {
            Some((location, error)) if !failing => {
                let (upstream, server) = (&upstream.settings.name, &location.authority);
                warn!(%upstream, %server, %error, "the name of a server cannot be looked up, its last addresses stay");
            }
            None if failing => {
                info!(upstream = %upstream.settings.name, "the names of all servers can be looked up again");
            }
            Some(_) | None => {}
        }
        failing = failed.is_some();
        sleep(EVERY).await;
    }
}

async fn look_up(location: &ServerUrl) -> io::Result<Vec<SocketAddr>> {
    let ServerAddress::Name { host, port } = ServerAddress::of(location) else { return Ok(Vec::new()) };
    let found = timeout(PATIENCE, lookup_host((host.as_str(), port))).await;
    let mut addresses: Vec<SocketAddr> = found.map_err(|_| io::ErrorKind::TimedOut)??.collect();
    // In no order of theirs: name servers turn the list at every look-up.
    addresses.sort_unstable();
    addresses.dedup();
    if addresses.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
    }
    Ok(addresses)
}

impl Upstream {
    /// From now on a name has these addresses.
    fn take_over(&self, location: &ServerUrl, addresses: &[SocketAddr]) {
        let before = self.servers();
        let mut of_name = before.iter().filter(|server| server.location == *location);
        if of_name.clone().count() == addresses.len()
            && of_name.all(|server| server.resolved().is_some_and(|address| addresses.contains(&address)))
        {
            return;
        }
        let mut servers: Vec<Arc<Server>> = Vec::with_capacity(before.len() + addresses.len());
        for known in &self.settings.servers {
            let of_name = before.iter().filter(|server| server.location == *known);
            if known != location {
                servers.extend(of_name.cloned());
                continue;
            }
            servers.extend(addresses.iter().map(|address| {
                let stays = of_name.clone().find(|server| server.resolved() == Some(*address));
                let anew = || self.settings.server(location, ServerAddress::Address(*address), self.client.as_ref());
                stays.map_or_else(anew, Arc::clone)
            }));
        }
        let (upstream, server) = (&self.settings.name, &location.authority);
        info!(%upstream, %server, ?addresses, "a server's name has these addresses now");
        Server::close_removed(&before, &servers);
        self.servers.store(Arc::new(servers));
        self.changed.notify_one();
    }
}

/// How soon a name that moved is noticed.
const EVERY: Duration = Duration::from_secs(3);

/// Name servers that are silent longer are asked again.
const PATIENCE: Duration = Duration::from_secs(5);

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
        assert!(servers.iter().all(|server| **server.name() == *server.location.authority.as_str()));
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
        });
        let addresses = |all: &[&str]| -> Vec<SocketAddr> { all.iter().map(|one| one.parse().unwrap()).collect() };
        check(&upstream, &["10.0.0.9:80", "?"]);
        upstream.take_over(&location("app.internal:80"), &addresses(&["10.0.0.1:80", "10.0.0.2:80"]));
        check(&upstream, &["10.0.0.9:80", "10.0.0.1:80", "10.0.0.2:80"]);
        let before = upstream.servers();
        upstream.take_over(&location("app.internal:80"), &addresses(&["10.0.0.2:80", "10.0.0.3:80"]));
        check(&upstream, &["10.0.0.9:80", "10.0.0.2:80", "10.0.0.3:80"]);
        assert!(Arc::ptr_eq(&before[2], &upstream.servers()[1]));
        let before = upstream.servers();
        upstream.take_over(&location("app.internal:80"), &addresses(&["10.0.0.2:80", "10.0.0.3:80"]));
        assert!(Arc::ptr_eq(&before, &upstream.servers()));
    }
}
