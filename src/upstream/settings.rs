//! What the configuration says of upstreams.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use http::uri::Authority;
use rustls::pki_types::ServerName;

use super::tls::ServerVerification;

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
    /// For the servers that speak TLS.
    pub tls: ServerVerification,
    /// Speak HTTP/2 to the servers. Upgrades always use HTTP/1.1.
    pub http2: bool,
    /// How many idle connections of HTTP/1.1 this process keeps to each server; `None`: as many as descriptors allow.
    pub max_idle: Option<usize>,
}

/// What a server's URL says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ServerUrl {
    pub location: Location,
    /// Of `https://`: the name that the server's certificate must be for.
    pub verified_as: Option<ServerName<'static>>,
}

/// Where a server's URL says that it is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Location {
    /// A host and a port.
    Authority(Authority),
    /// A Unix socket: `unix:` and its absolute path.
    UnixSocket(Arc<str>),
}

impl ServerUrl {
    /// The server's name in logs, metrics and on the admin page: the URL without its scheme.
    pub fn name(&self) -> &str {
        match &self.location {
            Location::Authority(authority) => authority.as_str(),
            Location::UnixSocket(name) => name,
        }
    }

    /// The host of requests that have none of their own. A Unix socket has no name that applications know.
    pub(super) fn host(&self) -> &str {
        match &self.location {
            Location::Authority(authority) => authority.as_str(),
            Location::UnixSocket(_) => "localhost",
        }
    }
}

/// Plain HTTP.
impl From<Authority> for ServerUrl {
    fn from(authority: Authority) -> Self {
        Self { location: Location::Authority(authority), verified_as: None }
    }
}

/// What the name of a server on a Unix socket begins with.
pub const UNIX_SOCKET: &str = "unix:";

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Balance {
    #[default]
    LeastRequests,
    RoundRobin,
    /// A client stays with its server.
    ClientIp,
}

/// The `Host` that an application sees.
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

/// How large the head of an answer may be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HeadBounds {
    pub bytes: usize,
    pub fields: usize,
}

impl HeadBounds {
    /// The bounds of requests, but never below the default: applications set dozens of long cookies.
    pub fn beside_requests(bytes: usize, fields: usize) -> Self {
        let least = Self::default();
        Self { bytes: bytes.max(least.bytes), fields: fields.max(least.fields) }
    }

    /// Both bounds in one number, as HTTP/2 counts: a field is 32 bytes longer than its text (RFC 9113, section 6.5.2).
    pub(super) fn http2_list_size(self) -> u32 {
        u32::try_from(self.bytes + self.fields * 32).unwrap_or(u32::MAX)
    }
}

impl Default for HeadBounds {
    fn default() -> Self {
        Self { bytes: 100 * 1024, fields: 1000 }
    }
}

/// How servers are checked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HealthCheck {
    pub path: String,
    /// The `Host` of the checks. `None`: that of requests, or the server's name.
    pub host: Option<HeaderValue>,
    pub every: Duration,
    pub timeout: Duration,
    /// So many good answers in a row make a server healthy.
    pub healthy: u32,
    /// So many bad answers in a row make a server unhealthy.
    pub unhealthy: u32,
}
