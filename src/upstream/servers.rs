//! The servers of one upstream, which change with reloads and with the addresses of their names.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use arc_swap::ArcSwap;
use rustls::ClientConfig;
use tokio::sync::Notify;

use super::address::ServerAddress;
use super::server::Server;
use super::settings::ServerUrl;
use super::settings::Settings;
use super::tls::ServerTls;

/// One upstream, shared by all cores: which of its servers are healthy, and how busy each is.
#[derive(Debug)]
pub struct Upstream {
    pub(super) settings: Settings,
    /// In the order of the settings. A name with several addresses is several servers.
    servers: ArcSwap<Vec<Arc<Server>>>,
    /// The TLS of new servers.
    tls: Option<ClientConfig>,
    /// Notified when `servers` has changed.
    pub(super) changed: Notify,
    /// The turns so far, for round robin.
    pub(super) turn: AtomicU64,
}

impl Upstream {
    pub fn new(settings: Settings) -> Arc<Self> {
        Self::with(settings, |_| Vec::new())
    }

    /// Takes over the servers that `known` has for a URL, and makes a new one where it has none.
    fn with(settings: Settings, known: impl Fn(&ServerUrl) -> Vec<Arc<Server>>) -> Arc<Self> {
        let has_tls = settings.servers.iter().any(|url| url.verified_as.is_some());
        let tls = has_tls.then(|| settings.tls.client_config());
        let servers = settings.servers.iter().flat_map(|url| {
            let mut servers = known(url);
            if servers.is_empty() {
                servers.push(new_server(&settings, url, ServerAddress::of(url), tls.as_ref()));
            }
            servers
        });
        let servers: Vec<Arc<Server>> = servers.collect();
        let turn = servers.iter().map(|server| server.turn.load(Ordering::Relaxed)).max().unwrap_or_default();
        let servers = ArcSwap::from_pointee(servers);
        Arc::new(Self { settings, servers, tls, changed: Notify::new(), turn: AtomicU64::new(turn) })
    }

    /// The upstream of these settings after a reload. If nothing changed it is the old one, with its servers' health and
    /// connections. Otherwise it takes over the servers that stay, where that is safe.
    pub fn carry_over(settings: Settings, old: &[Arc<Self>]) -> Arc<Self> {
        let Some(old) = old.iter().find(|old| old.settings.name == settings.name) else {
            return Self::new(settings);
        };
        if old.settings == settings {
            return Arc::clone(old);
        }
        // Without health checks an unhealthy server would stay unhealthy. A connection that was verified under another
        // name or authority must not be used under this one.
        let may_take_over = old.settings.health.is_some() == settings.health.is_some()
            && old.settings.tls == settings.tls
            && old.settings.http2 == settings.http2
            // A connection of HTTP/2 has its bounds from its beginning.
            && (!settings.http2 || old.settings.heads == settings.heads);
        let known = if may_take_over { old.servers() } else { Arc::default() };
        Self::with(settings, |url| known.iter().filter(|known| known.url == *url).cloned().collect())
    }

    /// Closes the connections to servers that are in `before` and not in `in_use`.
    pub fn close_removed(before: &[Arc<Self>], in_use: &[Arc<Self>]) {
        let servers = |upstreams: &[Arc<Self>]| -> Vec<Arc<Server>> {
            upstreams.iter().flat_map(|upstream| upstream.servers().to_vec()).collect()
        };
        Server::close_removed(&servers(before), &servers(in_use));
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// In the order of the settings. The servers of one name stand together, and all have that name.
    pub fn servers(&self) -> Arc<Vec<Arc<Server>>> {
        self.servers.load_full()
    }

    /// Whether a server of this name, as written in the configuration, gets requests: it is healthy, and the last
    /// requests to it did not fail.
    pub fn is_served_by(&self, name: &str) -> bool {
        self.servers.load().iter().any(|server| **server.name() == *name && server.is_healthy() && !server.is_failing())
    }

    pub(super) fn load_servers(&self) -> arc_swap::Guard<Arc<Vec<Arc<Server>>>> {
        self.servers.load()
    }

    pub(super) fn replace_servers(&self, servers: Vec<Arc<Server>>) {
        Server::close_removed(&self.servers.load(), &servers);
        self.servers.store(Arc::new(servers));
        self.changed.notify_one();
    }

    pub(super) fn new_server(&self, url: &ServerUrl, address: ServerAddress) -> Arc<Server> {
        new_server(&self.settings, url, address, self.tls.as_ref())
    }
}

fn new_server(settings: &Settings, url: &ServerUrl, address: ServerAddress, tls: Option<&ClientConfig>) -> Arc<Server> {
    let tls = tls.zip(url.verified_as.as_ref()).map(|(tls, host)| {
        let name = settings.tls.server_name.as_ref().unwrap_or(host);
        ServerTls::new(tls, name.clone())
    });
    Arc::new(Server::new(url, address, tls, settings.http2))
}
