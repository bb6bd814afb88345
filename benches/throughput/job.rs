//! What is asked of the proxies, and what is to come of it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::load::Sends;
use super::proxy::Setup;

/// One row of the table.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Job {
    pub(crate) name: &'static str,
    /// What the proxies are to do.
    pub(crate) setup: Setup,
    pub(crate) path: &'static str,
    /// What is asked for once before, if anything.
    pub(crate) sign_in: Option<&'static str>,
    pub(crate) sends: Sends,
    pub(crate) status: u16,
    /// The media type of the answers.
    pub(crate) answer: &'static str,
    pub(crate) over: Over,
    pub(crate) clients: Clients,
    pub(crate) connections: usize,
    /// At most so many times the CPU per request of nginx; or so many KiB for a connection that only waits.
    pub(crate) goal: Option<f64>,
}

/// What requests travel over. All of TLS is 1.3 with the same suite, key exchange and kind of certificate.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum Over {
    /// HTTP/1.1 on connections that stay, one request at a time on each.
    Tcp,
    /// The same, asking about each request by forward auth instead of sending it.
    ForwardAuth,
    /// The same by this call over gRPC, without TLS: so many calls at a time on each connection.
    Grpc(Call, usize),
    /// Requests themselves again, over TLS.
    Tls,
    /// A connection, a full handshake, one request over HTTP/1.1 and the end; then the next connection.
    FreshTls,
    /// HTTP/2 over TLS, so many requests at a time on each connection.
    Http2(usize),
}

/// What a proxy calls to ask about a request.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum Call {
    Check,
    ShouldRateLimit,
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
    /// What most jobs are: 64 keep-alive connections, a browser that opens pages.
    pub(crate) const fn new(name: &'static str, path: &'static str, status: u16) -> Self {
        Self {
            name,
            setup: Setup::Limits,
            path,
            sign_in: None,
            sends: Sends::Navigation,
            status,
            answer: "text/html",
            over: Over::Tcp,
            clients: Clients::One,
            connections: 64,
            goal: None,
        }
    }

    /// From a program, which sends few fields.
    const fn few(self, name: &'static str) -> Self {
        Self { name, sends: Sends::Few, goal: None, ..self }
    }

    /// The same, passing one limit in memory.
    const fn limited(name: &'static str, goal: f64) -> Self {
        Self { goal: Some(goal), ..Self::new(name, "/", 200) }
    }

    const fn refused(name: &'static str, path: &'static str) -> Self {
        Self { goal: Some(1.0), ..Self::new(name, path, 429) }
    }

    /// 1 MiB of an answer, on 16 connections.
    const fn down(name: &'static str, goal: f64) -> Self {
        Self { path: LARGE, answer: "application/octet-stream", connections: 16, ..Self::limited(name, goal) }
    }

    /// 1 MiB of a request, on 16 connections.
    const fn up(name: &'static str, goal: f64) -> Self {
        Self { sends: Sends::Upload(1 << 20), connections: 16, ..Self::limited(name, goal) }
    }

    /// For how long the load runs before it counts: with many connections, until each of them has been used on both sides.
    pub(crate) fn warm_up(&self) -> Duration {
        if self.connections < 1000 { Duration::ZERO } else { Duration::from_secs(4) }
    }

    pub(crate) const fn over(self, over: Over) -> Self {
        Self { over, ..self }
    }

    /// On one connection, a request at a time.
    const fn alone(self) -> Self {
        Self { connections: 1, ..self }
    }
}

const LIMITED: Job = Job::limited("proxied, one limit", 0.85);
const FEW: Job = LIMITED.few("proxied, one limit, few fields");
const CROWDED: Job = Job { connections: 1000, ..Job::limited("proxied, one limit, 1000 connections", 0.9) };
const LISTS: Job = Job { setup: Setup::Lists, ..Job::limited("proxied, four limits and two lists", 0.85) };
const PAGE: Job = Job::refused("refused with 429, a page", "/refused");
const PROBLEM: Job = Job {
    sends: Sends::Fetch,
    answer: "application/problem+json",
    ..Job::refused("refused with 429, a problem document", "/problem")
};
const FEW_REFUSED: Job = PROBLEM.few("refused with 429, a problem document, few fields");
const LOGGED: Job = Job { setup: Setup::Logged, ..Job::limited("proxied, one limit, access log to a file", 0.85) };
const FORM: Job = Job {
    setup: Setup::Form,
    path: "/login",
    sends: Sends::Form,
    ..Job::limited("POST of 1 KiB, one limit by a form field", 0.85)
};
const COOKIE: Job = Job { setup: Setup::Cookie, ..Job::limited("proxied, one limit by a session cookie", 0.85) };
const USER: Job = Job {
    setup: Setup::User,
    sign_in: Some("/sign-in?name=alice"),
    ..Job::limited("proxied, one limit by the user of that session", 0.85)
};
const TLS: Job = Job::limited("TLS, keep-alive", 0.62).over(Over::Tls);

/// Those of the table of limits in memory.
pub(crate) const JOBS: [Job; 20] = [
    Job::new("proxied, no limit", "/plain", 200),
    LIMITED,
    FEW,
    LISTS,
    PAGE,
    PROBLEM,
    FEW_REFUSED,
    LOGGED,
    FORM,
    Job { connections: 4, ..Job::limited("proxied, one limit, 4 connections", 1.03) },
    CROWDED,
    Job { connections: 4000, ..Job::limited("proxied, one limit, 4000 connections", 0.9) },
    Job { connections: 9000, goal: None, ..Job::limited("proxied, one limit, 9000 connections", 0.9) },
    Job::down("1 MiB down", 0.9),
    Job::up("1 MiB up", 0.9),
    TLS,
    Job::limited("TLS, full handshake and one request", 0.65).over(Over::FreshTls),
    Job { connections: 8, ..Job::limited("HTTP/2 over TLS, 8 connections of 8 streams", 0.75) }.over(Over::Http2(8)),
    Job::down("1 MiB down over TLS", 0.9).over(Over::Tls),
    Job::up("1 MiB up over TLS", 0.9).over(Over::Tls),
];

/// Those whose instructions are counted.
pub(crate) const COUNTED: [Job; 14] = [
    LIMITED.alone(),
    FEW.alone(),
    CROWDED,
    LISTS.alone(),
    PAGE.alone(),
    // The denials before those that are counted are a flood, to which these belong.
    Job { name: "denied, while an attack is grouped", ..PROBLEM }.alone(),
    FEW_REFUSED.alone(),
    LOGGED.alone(),
    FORM.alone(),
    COOKIE.alone(),
    USER.alone(),
    Job { setup: Setup::Redis, clients: Clients::Keys(100), ..Job::new("proxied, one limit in Redis", "/", 200) }
        .alone(),
    TLS.alone(),
    Job::limited("HTTP/2 over TLS", 0.75).over(Over::Http2(1)).alone(),
];

/// Where the application answers with 1 MiB.
pub(crate) const LARGE: &str = "/large";
