//! The applications behind: their servers, who is chosen, and connections kept to them.

pub mod answer;
pub mod error;
pub mod health;
pub mod pool;
pub mod server;

mod balance;
mod connect;
mod link;
mod send;
mod wire;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use http::HeaderValue;
use http::uri::Authority;

pub use self::answer::Answer;
pub use self::answer::AnswerBody;
pub use self::error::BodyError;
pub use self::error::ForwardError;
pub use self::pool::Pool;
pub use self::server::Server;

/// What the configuration says of one upstream. Comparable, so that a reload keeps what did not change.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    pub name: Arc<str>,
    /// At least one. Plain HTTP.
    pub servers: Vec<Authority>,
    pub balance: Balance,
    pub host: HostHeader,
    pub timeouts: Timeouts,
    pub health: Option<HealthCheck>,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Balance {
    #[default]
    LeastRequests,
    RoundRobin,
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
    servers: Vec<Arc<Server>>,
    /// Whose turn it is, for round robin.
    turn: AtomicUsize,
}

impl Upstream {
    pub fn new(settings: Settings) -> Arc<Self> {
        let servers = settings.servers.iter().map(|server| Arc::new(Server::new(server))).collect();
        Arc::new(Self { settings, servers, turn: AtomicUsize::new(0) })
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
        let servers = settings.servers.iter().map(|authority| {
            let stays = old.servers.iter().find(|server| **server.name() == *authority.as_str());
            // Without health checks nobody would ever call it healthy again.
            let stays = stays.filter(|_| old.settings.health.is_some() == settings.health.is_some());
            stays.map_or_else(|| Arc::new(Server::new(authority)), Arc::clone)
        });
        let servers = servers.collect();
        Arc::new(Self { settings, servers, turn: AtomicUsize::new(0) })
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// In the order of the settings.
    pub fn servers(&self) -> &[Arc<Server>] {
        &self.servers
    }
}

#[cfg(test)]
mod tests;
