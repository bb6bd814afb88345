//! The applications behind: their servers, who is chosen, and connections kept to them.

pub mod background_tasks;
pub mod error;
pub mod pool;
pub mod replay;
pub mod response;
pub mod server;
pub mod tls;

mod attempts;
mod balance;
mod connect;
mod health;
mod http1;
mod http2;
mod resolve;
mod send;
mod stream;
mod tunnel;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arc_swap::ArcSwap;
use http::HeaderValue;
use http::uri::Authority;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::sync::Notify;

pub use self::error::BodyError;
pub use self::error::ForwardError;
pub use self::error::PreviousAttempts;
pub use self::pool::Pool;
pub use self::replay::ReplayBody;
pub use self::response::UpstreamBody;
pub use self::response::UpstreamResponse;
pub use self::server::Server;
pub use self::tls::ServerVerification;
pub use self::tunnel::Tunnel;

use self::server::ServerAddress;
use self::tls::ServerTls;

/// What the configuration says of one upstream. Comparable, so that a reload keeps what did not change.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    pub name: Arc<str>,
    /// At least one.
    pub servers: Vec<ServerUrl>,
    pub balance: Balance,
    pub host: HostHeader,
    pub timeouts: Timeouts,
    pub heads: HeadBounds,
    pub health: Option<HealthCheck>,
    /// For those of the servers that speak TLS.
    pub tls: ServerVerification,
    /// Whether servers are spoken to in HTTP/2. Upgrades are asked for in HTTP/1.1.
    pub http2: bool,
}

/// What a server's URL says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ServerUrl {
    pub authority: Authority,
    /// Of `https://`: who its certificate must be for.
    pub verified_as: Option<ServerName<'static>>,
}

/// Plain HTTP.
impl From<Authority> for ServerUrl {
    fn from(authority: Authority) -> Self {
        Self { authority, verified_as: None }
    }
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Balance {
    #[default]
    LeastRequests,
    RoundRobin,
    /// A client stays with its server.
    ClientIp,
}

/// The Host an application sees.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum HostHeader {
    /// The client's.
    #[default]
    Preserve,
    Fixed(HeaderValue),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Timeouts {
    pub connect: Duration,
    /// From the request sent to the head of the answer, and between two parts of its body.
    pub response: Duration,
    /// How long an unused connection is kept.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(2), response: Duration::from_secs(60), idle: Duration::from_secs(60) }
    }
}

/// What the head of an answer may have at most.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HeadBounds {
    pub bytes: usize,
    pub fields: usize,
}

impl HeadBounds {
    /// What the heads of requests may have is enough for those of answers, if it is no less than ordinary ones have:
    /// applications set dozens of long cookies.
    pub fn beside_requests(bytes: usize, fields: usize) -> Self {
        let least = Self::default();
        Self { bytes: bytes.max(least.bytes), fields: fields.max(least.fields) }
    }

    /// Both bounds in one number, as HTTP/2 counts: a field is 32 bytes longer than its text (RFC 9113, section 6.5.2).
    fn http2_list_size(self) -> u32 {
        u32::try_from(self.bytes + self.fields * 32).unwrap_or(u32::MAX)
    }
}

impl Default for HeadBounds {
    fn default() -> Self {
        Self { bytes: 100 * 1024, fields: 1000 }
    }
}

/// How a server is asked whether it is well.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HealthCheck {
    pub path: String,
    pub every: Duration,
    pub timeout: Duration,
    /// So many good answers in a row make a server healthy.
    pub healthy: u32,
    /// So many bad ones in a row make it unhealthy.
    pub unhealthy: u32,
}

/// One upstream, shared by all cores: which of its servers are well, and how busy each is.
#[derive(Debug)]
pub struct Upstream {
    settings: Settings,
    /// In the order of the settings. A name with several addresses is several servers.
    servers: ArcSwap<Vec<Arc<Server>>>,
    /// Makes further ones.
    client: Option<ClientConfig>,
    /// The servers are others than before.
    changed: Notify,
    /// How many turns there were, for round robin.
    turn: AtomicU64,
}

impl Upstream {
    pub fn new(settings: Settings) -> Arc<Self> {
        Self::with(settings, |_| Vec::new())
    }

    /// Servers that `stays` does not know are made anew.
    fn with(settings: Settings, stays: impl Fn(&ServerUrl) -> Vec<Arc<Server>>) -> Arc<Self> {
        let has_tls = settings.servers.iter().any(|location| location.verified_as.is_some());
        let client = has_tls.then(|| settings.tls.client());
        let servers = settings.servers.iter().flat_map(|location| {
            let mut stay = stays(location);
            if stay.is_empty() {
                stay.push(settings.server(location, ServerAddress::of(location), client.as_ref()));
            }
            stay
        });
        let servers: Vec<Arc<Server>> = servers.collect();
        let turn = servers.iter().map(|server| server.turn.load(Ordering::Relaxed)).max().unwrap_or_default();
        let servers = ArcSwap::from_pointee(servers);
        Arc::new(Self { settings, servers, client, changed: Notify::new(), turn: AtomicU64::new(turn) })
    }

    /// The upstream of these settings after a reload: the same one if nothing changed, with its servers' health and
    /// connections; what is known of servers that stay is kept otherwise too.
    pub fn carry_over(settings: Settings, old: &[Arc<Self>]) -> Arc<Self> {
        let Some(old) = old.iter().find(|old| old.settings.name == settings.name) else {
            return Self::new(settings);
        };
        if old.settings == settings {
            return Arc::clone(old);
        }
        // Without health checks nobody would ever call it healthy again; and a connection that was made under another
        // name or authority is not to be used under this one.
        let alike = old.settings.health.is_some() == settings.health.is_some()
            && old.settings.tls == settings.tls
            && old.settings.http2 == settings.http2
            // A connection of HTTP/2 has its bounds from its beginning.
            && (!settings.http2 || old.settings.heads == settings.heads);
        let known = if alike { old.servers() } else { Arc::default() };
        Self::with(settings, |location| known.iter().filter(|known| known.location == *location).cloned().collect())
    }

    /// Has the connections closed that are kept to servers of `before` and of none of `in_use`.
    pub fn close_removed(before: &[Arc<Self>], in_use: &[Arc<Self>]) {
        let servers = |upstreams: &[Arc<Self>]| -> Vec<Arc<Server>> {
            upstreams.iter().flat_map(|upstream| upstream.servers().to_vec()).collect()
        };
        Server::close_removed(&servers(before), &servers(in_use));
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// In the order of the settings; those of one name stand together, and have one name.
    pub fn servers(&self) -> Arc<Vec<Arc<Server>>> {
        self.servers.load_full()
    }

    /// Whether any server of this name, as written in the configuration, is being sent requests: it is healthy, and did
    /// not fail those that tried it last.
    pub fn is_served_by(&self, name: &str) -> bool {
        self.servers.load().iter().any(|server| **server.name() == *name && server.is_healthy() && !server.is_failing())
    }
}

impl Settings {
    fn server(&self, location: &ServerUrl, place: ServerAddress, client: Option<&ClientConfig>) -> Arc<Server> {
        let secure = client.zip(location.verified_as.as_ref()).map(|(client, host)| {
            let name = self.tls.server_name.as_ref().unwrap_or(host);
            ServerTls::new(client, name.clone())
        });
        Arc::new(Server::new(location, place, secure, self.http2))
    }
}

#[cfg(test)]
mod tests;
