//! The applications behind: their servers, who is chosen, and connections kept to them.

pub mod error;
pub mod pool;

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use http::uri::Authority;

pub use self::error::ForwardError;
pub use self::pool::Answer;
pub use self::pool::Pool;

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
}

impl Upstream {
    pub fn new(settings: Settings) -> Arc<Self> {
        Arc::new(Self { settings })
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }
}
