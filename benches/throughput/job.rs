//! What is asked of the proxies, and what is to come of it.

use serde::Deserialize;
use serde::Serialize;

/// One row of the table.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Job {
    pub(crate) name: &'static str,
    pub(crate) path: &'static str,
    pub(crate) status: u16,
    pub(crate) over: Over,
    pub(crate) clients: Clients,
    pub(crate) connections: usize,
    /// Bytes of a body.
    pub(crate) sends: usize,
    /// At most so many times the CPU per request of nginx; or so many KiB for a connection that only waits.
    pub(crate) goal: Option<f64>,
}

/// What requests travel over. All of TLS is 1.3 with the same suite, key exchange and kind of certificate.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum Over {
    /// HTTP/1.1 on connections that stay, one request at a time on each.
    Tcp,
    /// The same over TLS.
    Tls,
    /// A connection, a full handshake, one request over HTTP/1.1 and the end; then the next connection.
    FreshTls,
    /// HTTP/2 over TLS, several requests at a time on each connection.
    Http2,
}

/// Who asks.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum Clients {
    One,
    /// So many keys take turns.
    Keys(usize),
    /// Each connection has an address of its own.
    Addresses,
}

impl Job {
    /// What most jobs are: 64 keep-alive connections, small requests of one client.
    pub(crate) const fn new(name: &'static str, path: &'static str, status: u16) -> Self {
        Self { name, path, status, over: Over::Tcp, clients: Clients::One, connections: 64, sends: 0, goal: None }
    }

    const fn limited(name: &'static str, goal: f64) -> Self {
        Self { goal: Some(goal), ..Self::new(name, "/", 200) }
    }
}

/// Those of the table of limits in memory. Each request meets one limit, but those of the first row, which meet none.
pub(crate) const JOBS: [Job; 9] = [
    Job::new("proxied, no limit", "/plain", 200),
    Job::limited("proxied, a limit that does not bind", 0.9),
    Job { goal: Some(1.0), ..Job::new("refused with 429", "/refused", 429) },
    Job { connections: 4, ..Job::limited("proxied, 4 connections", 1.1) },
    Job { connections: 16, path: LARGE, ..Job::limited("1 MiB down", 1.1) },
    Job { connections: 16, sends: 1 << 20, ..Job::limited("1 MiB up", 1.1) },
    Job { over: Over::Tls, ..Job::limited("TLS, keep-alive", 0.75) },
    Job { over: Over::FreshTls, ..Job::limited("TLS, full handshake and one request", 0.65) },
    Job { over: Over::Http2, connections: 8, ..Job::new("HTTP/2 over TLS, 8 connections of 8 streams", "/", 200) },
];

/// Where the application answers with 1 MiB.
pub(crate) const LARGE: &str = "/large";
