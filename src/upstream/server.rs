//! One server of an upstream: where it is, whether it is healthy, and how busy it is.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use http::uri::Authority;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::error::FailureCause;
use crate::upstream::servers::{Location, ServerUrl, UNIX_SOCKET};
use crate::upstream::stream::ServerTls;
use crate::wire::http1::repair::Repairs;

/// Long enough to keep most requests from a dead server, short enough to notice soon that it works again.
const BACKOFF: Duration = Duration::from_secs(1);

/// So many unanswered requests in a row are the server's fault, not the requests'.
const FAILING: u32 = 3;

/// After this many failed connections in a row the server counts as absent, and starts slowly.
const ABSENT: u32 = 3;

/// How long a server that is back gets less than its share.
const SLOW_START: Duration = Duration::from_secs(10);

/// The whole share, in thousandths, and the share at the beginning of a slow start.
pub(super) const FULL_SHARE: u16 = 1000;

const MIN_SHARE: u16 = 100;

/// A server, shared by all cores.
#[derive(Debug)]
pub struct Server {
    name: Arc<str>,
    host: Arc<str>,
    pub(super) id: ServerId,
    pub(super) address: ServerAddress,
    /// `None`: it speaks plain HTTP.
    pub(super) tls: Option<ServerTls>,
    pub(super) speaks_http2: bool,
    /// The URL that the server was made from.
    pub(super) url: ServerUrl,
    in_flight: AtomicUsize,
    /// Its idle connections on all cores, where they have a bound.
    idle: AtomicUsize,
    healthy: AtomicBool,
    /// Failed connections in a row.
    refusals: AtomicU32,
    /// Requests in a row that the server took and did not answer.
    unanswered: AtomicU32,
    /// A failure put the server behind the others, and nothing has succeeded there since.
    failing: AtomicBool,
    /// Whether it was said that its answers are mended.
    has_said_repairs: AtomicBool,
    /// When the server was last chosen in turn.
    pub(super) turn: AtomicU64,
    /// Microseconds from `created` to the end of its backoff; zero: it has none.
    backs_off_until: AtomicU64,
    /// Microseconds from `created` to the beginning of its slow start; zero: it has none.
    slow_start: AtomicU64,
    created: Instant,
    /// Cancelled when no upstream has the server any more: connections to it close when they are idle.
    pub(super) removed: CancellationToken,
}

/// Tells servers apart, over reloads too.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct ServerId(u64);

impl Server {
    pub(super) fn new(url: &ServerUrl, address: ServerAddress, tls: Option<ServerTls>, speaks_http2: bool) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            name: url.name().into(),
            host: url.host().into(),
            id: ServerId(NEXT.fetch_add(1, Ordering::Relaxed)),
            address,
            tls,
            speaks_http2,
            url: url.clone(),
            in_flight: AtomicUsize::new(0),
            idle: AtomicUsize::new(0),
            healthy: AtomicBool::new(true),
            refusals: AtomicU32::new(0),
            unanswered: AtomicU32::new(0),
            failing: AtomicBool::new(false),
            has_said_repairs: AtomicBool::new(false),
            turn: AtomicU64::new(0),
            backs_off_until: AtomicU64::new(0),
            slow_start: AtomicU64::new(0),
            created: Instant::now(),
            removed: CancellationToken::new(),
        }
    }

    /// Closes the connections to servers that are in `before` and not in `in_use`: idle ones at once, the others when
    /// their requests have ended.
    pub(super) fn close_removed(before: &[Arc<Self>], in_use: &[Arc<Self>]) {
        for server in before.iter().filter(|server| !in_use.iter().any(|other| other.id == server.id)) {
            server.removed.cancel();
        }
    }

    /// The name as written in the configuration.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The host of requests that have none of their own.
    pub(super) fn host(&self) -> &Arc<str> {
        &self.host
    }

    /// Its address, where it is known.
    pub(super) fn resolved(&self) -> Option<SocketAddr> {
        match self.address {
            ServerAddress::Address(address) => Some(address),
            ServerAddress::Name { .. } | ServerAddress::UnixSocket(_) => None,
        }
    }

    /// The result of health checks; healthy without them.
    pub fn is_healthy(&self) -> bool {
        self.healthy.load(Ordering::Relaxed)
    }

    pub(super) fn set_healthy(&self, healthy: bool) {
        if healthy && !self.is_healthy() {
            self.begin_slow_start();
        }
        self.healthy.store(healthy, Ordering::Relaxed);
    }

    /// Requests sent whose answers have not ended.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    pub(super) fn begin_request(self: &Arc<Self>) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(Arc::clone(self))
    }

    /// A connection failed: the other servers go first for a moment.
    pub(super) fn note_not_connected(&self, cause: &FailureCause) {
        // Requests that fail at the same time count as one failure.
        let is_known = self.backs_off() && self.refusals.load(Ordering::Relaxed) > 0;
        self.put_aside();
        if !is_known && self.refusals.fetch_add(1, Ordering::Relaxed) == 0 {
            warn!(server = %self.name, %cause, "connecting to a server failed, preferring the other servers");
        }
    }

    /// A connection was made. After a longer absence the server does not get its full share at once.
    pub(super) fn note_connected(&self) {
        if self.refusals.load(Ordering::Relaxed) == 0 {
            return;
        }
        self.backs_off_until.store(0, Ordering::Relaxed);
        if self.refusals.swap(0, Ordering::Relaxed) >= ABSENT {
            self.begin_slow_start();
        }
    }

    /// The server took a request and did not answer it. After several in a row the other servers go first. A request
    /// that the client did not finish does not count.
    pub(super) fn note_unanswered(&self, cause: &FailureCause) {
        let before = self.unanswered.fetch_add(1, Ordering::Relaxed);
        if before + 1 < FAILING {
            return;
        }
        self.put_aside();
        if before + 1 == FAILING {
            warn!(server = %self.name, %cause, "a server leaves requests unanswered, preferring the other servers");
        }
    }

    fn put_aside(&self) {
        self.backs_off_until.store(self.since_created(BACKOFF), Ordering::Relaxed);
        self.failing.store(true, Ordering::Relaxed);
    }

    /// The head of an answer was mended. One line is enough: such an application does it every time.
    pub(super) fn note_repairs(&self, repairs: Repairs) {
        if !self.has_said_repairs.swap(true, Ordering::Relaxed) {
            warn!(server = %self.name, "a server answers with {repairs}, which clients get as blanks; said once");
        }
    }

    pub(super) fn note_answered(&self) {
        if self.unanswered.load(Ordering::Relaxed) > 0 && self.unanswered.swap(0, Ordering::Relaxed) >= FAILING {
            self.backs_off_until.store(0, Ordering::Relaxed);
        }
        self.note_success();
    }

    /// A request or a health check got an answer.
    pub(super) fn note_success(&self) {
        // Cores that only read a flag do not take it from each other.
        if self.is_failing() {
            self.failing.store(false, Ordering::Relaxed);
        }
    }

    /// Whether a failure put the server behind the others, and no request or health check has succeeded since. Its backoff may
    /// have ended long ago.
    pub(super) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }

    /// Whether the other servers go first.
    pub(super) fn backs_off(&self) -> bool {
        let until = self.backs_off_until.load(Ordering::Relaxed);
        until != 0 && self.since_created(Duration::ZERO) < until
    }

    /// The server was chosen. If its backoff has just ended, this one request tries whether it works again: for the
    /// other requests the backoff starts anew.
    pub(super) fn note_chosen(&self) {
        let until = self.backs_off_until.load(Ordering::Relaxed);
        if until != 0 && !self.backs_off() {
            self.backs_off_until.store(self.since_created(BACKOFF), Ordering::Relaxed);
        }
    }

    fn begin_slow_start(&self) {
        self.slow_start.store(self.since_created(Duration::ZERO), Ordering::Relaxed);
    }

    /// The part of its share that the server gets, in thousandths: less during a slow start.
    pub(super) fn slow_start_share(&self) -> u16 {
        let began = self.slow_start.load(Ordering::Relaxed);
        if began == 0 {
            return FULL_SHARE;
        }
        let span = u64::try_from(SLOW_START.as_micros()).unwrap_or(u64::MAX);
        let passed = self.since_created(Duration::ZERO).saturating_sub(began);
        let share = u16::try_from(passed.saturating_mul(u64::from(FULL_SHARE)) / span).unwrap_or(FULL_SHARE);
        if share >= FULL_SHARE {
            self.slow_start.store(0, Ordering::Relaxed);
        }
        share.clamp(MIN_SHARE, FULL_SHARE)
    }

    /// Microseconds from its creation to `ahead` of now; never zero.
    fn since_created(&self, ahead: Duration) -> u64 {
        u64::try_from((self.created.elapsed() + ahead).as_micros()).unwrap_or(u64::MAX).max(1)
    }
}

/// Counts one request at a server until it is dropped.
pub(super) struct InFlight(Arc<Server>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InFlight").field(&self.0.name).finish()
    }
}

/// One of the idle connections that a server may have. Given back when this is dropped.
#[derive(Debug)]
pub(super) struct IdlePlace(Arc<Server>);

impl IdlePlace {
    /// `None`: there are `most` already.
    pub(super) fn take(server: &Arc<Server>, most: usize) -> Option<Self> {
        // Given back at once if it is one too many.
        let place = Self(Arc::clone(server));
        (server.idle.fetch_add(1, Ordering::Relaxed) < most).then_some(place)
    }
}

impl Drop for IdlePlace {
    fn drop(&mut self) {
        self.0.idle.fetch_sub(1, Ordering::Relaxed);
    }
}

// Where a server is: an address, a name that has addresses, or a Unix socket.

const HTTP_PORT: u16 = 80;

const HTTPS_PORT: u16 = 443;

#[derive(Debug)]
pub(super) enum ServerAddress {
    Address(SocketAddr),
    /// While the addresses of a name are unknown, it is looked up for each connection.
    Name {
        host: String,
        port: u16,
    },
    UnixSocket(PathBuf),
}

impl ServerAddress {
    pub(super) fn of(url: &ServerUrl) -> Self {
        let authority = match &url.location {
            Location::Authority(authority) => authority,
            Location::UnixSocket(name) => {
                return Self::UnixSocket(name.strip_prefix(UNIX_SOCKET).unwrap_or(name).into());
            }
        };
        let default = if url.verified_as.is_some() { HTTPS_PORT } else { HTTP_PORT };
        let port = authority.port_u16().unwrap_or(default);
        let host = bare_host(authority);
        match host.parse::<IpAddr>() {
            Ok(address) => Self::Address(SocketAddr::new(address, port)),
            Err(_) => Self::Name { host: host.to_owned(), port },
        }
    }
}

/// The host of an authority, an IPv6 address without its brackets.
pub fn bare_host(authority: &Authority) -> &str {
    let host = authority.host();
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(authority: &str, expected: &str) {
        let address = match ServerAddress::of(&authority.parse::<Authority>().unwrap().into()) {
            ServerAddress::Address(address) => format!("address {address}"),
            ServerAddress::Name { host, port } => format!("name {host} {port}"),
            ServerAddress::UnixSocket(path) => format!("socket {}", path.display()),
        };
        assert_eq!(address, expected);
    }

    #[test]
    fn addresses_are_not_looked_up() {
        check("10.0.1.5:8000", "address 10.0.1.5:8000");
        check("10.0.1.5", "address 10.0.1.5:80");
        check("[2001:db8::1]:81", "address [2001:db8::1]:81");
        check("app.internal:8000", "name app.internal 8000");
    }
}
