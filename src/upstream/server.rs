//! One server of an upstream: where it is, whether it is well, how busy it is.

use std::fmt;
use std::net::IpAddr;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::uri::Authority;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::ServerUrl;
use super::error::FailureCause;
use super::tls::ServerTls;

/// A server, shared by all cores.
#[derive(Debug)]
pub struct Server {
    name: Arc<str>,
    pub(super) id: ServerId,
    pub(super) place: ServerAddress,
    /// Where it speaks TLS.
    pub(super) secure: Option<ServerTls>,
    pub(super) speaks_http2: bool,
    /// What it was made from.
    pub(super) location: ServerUrl,
    in_flight: AtomicUsize,
    healthy: AtomicBool,
    /// Connections in a row that it did not give.
    refusals: AtomicU32,
    /// Requests in a row that it took and did not answer.
    unanswered: AtomicU32,
    /// When it was last chosen in turn.
    pub(super) turn: AtomicU64,
    /// Microseconds from `created` to the end of its rest; zero: none.
    backs_off_until: AtomicU64,
    /// Microseconds from `created` to its return after an absence; zero: it was never away.
    returned: AtomicU64,
    created: Instant,
    /// No upstream has it any more: connections to it close when they are idle.
    pub(super) gone: CancellationToken,
}

/// Tells servers apart, over reloads too.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct ServerId(u64);

/// Where a server is.
#[derive(Debug)]
pub(super) enum ServerAddress {
    Address(SocketAddr),
    /// A name whose addresses are not known yet is looked up for each connection.
    Name {
        host: String,
        port: u16,
    },
}

impl Server {
    pub(super) fn new(
        location: &ServerUrl,
        place: ServerAddress,
        secure: Option<ServerTls>,
        speaks_http2: bool,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            name: location.authority.as_str().into(),
            id: ServerId(NEXT.fetch_add(1, Ordering::Relaxed)),
            place,
            secure,
            speaks_http2,
            location: location.clone(),
            in_flight: AtomicUsize::new(0),
            healthy: AtomicBool::new(true),
            refusals: AtomicU32::new(0),
            unanswered: AtomicU32::new(0),
            turn: AtomicU64::new(0),
            backs_off_until: AtomicU64::new(0),
            returned: AtomicU64::new(0),
            created: Instant::now(),
            gone: CancellationToken::new(),
        }
    }

    /// Has the connections closed that are kept to servers which are not in use any more: at once when they are idle, and
    /// else when what they carry has ended.
    pub(super) fn close_removed(before: &[Arc<Self>], in_use: &[Arc<Self>]) {
        for server in before.iter().filter(|server| !in_use.iter().any(|other| other.id == server.id)) {
            server.gone.cancel();
        }
    }

    /// As written in the configuration.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Its address, where it is known.
    pub(super) fn resolved(&self) -> Option<SocketAddr> {
        match self.place {
            ServerAddress::Address(address) => Some(address),
            ServerAddress::Name { .. } => None,
        }
    }

    /// What health checks say; healthy without them.
    pub fn is_healthy(&self) -> bool {
        self.healthy.load(Ordering::Relaxed)
    }

    pub(super) fn set_healthy(&self, healthy: bool) {
        if healthy && !self.is_healthy() {
            self.has_returned();
        }
        self.healthy.store(healthy, Ordering::Relaxed);
    }

    /// Requests sent whose answers have not ended.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    pub(super) fn begin(self: &Arc<Self>) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(Arc::clone(self))
    }

    /// It gave no connection: others go first for a moment.
    pub(super) fn rest(&self, cause: &FailureCause) {
        // Those that found out at the same time found out one thing.
        let is_known = self.rests() && self.refusals.load(Ordering::Relaxed) > 0;
        self.backs_off_until.store(self.since_created(REST), Ordering::Relaxed);
        if !is_known && self.refusals.fetch_add(1, Ordering::Relaxed) == 0 {
            warn!(server = %self.name, %cause, "a server gives no connection, others go first");
        }
    }

    /// It gave a connection. After a longer absence it is not to get its full share at once.
    pub(super) fn note_connected(&self) {
        if self.refusals.load(Ordering::Relaxed) == 0 {
            return;
        }
        self.backs_off_until.store(0, Ordering::Relaxed);
        if self.refusals.swap(0, Ordering::Relaxed) >= ABSENT {
            self.has_returned();
        }
    }

    /// It took a request and gave no answer, unless the client did not send all of it. Where that is the rule, others go
    /// first.
    pub(super) fn note_unanswered(&self, cause: &FailureCause) {
        if matches!(cause, FailureCause::RequestBody(_)) {
            return;
        }
        let before = self.unanswered.fetch_add(1, Ordering::Relaxed);
        if before + 1 < FAILING {
            return;
        }
        self.backs_off_until.store(self.since_created(REST), Ordering::Relaxed);
        if before + 1 == FAILING {
            warn!(server = %self.name, %cause, "a server answers no request, others go first");
        }
    }

    /// It answered a request.
    pub(super) fn answered(&self) {
        if self.unanswered.load(Ordering::Relaxed) > 0 && self.unanswered.swap(0, Ordering::Relaxed) >= FAILING {
            self.backs_off_until.store(0, Ordering::Relaxed);
        }
    }

    /// Those that tried it last got no connection or no answer; no longer than a moment after the last of them.
    pub(super) fn is_failing(&self) -> bool {
        let until = self.backs_off_until.load(Ordering::Relaxed);
        let rest = u64::try_from(REST.as_micros()).unwrap_or(u64::MAX);
        until != 0 && self.since_created(Duration::ZERO) < until.saturating_add(rest)
    }

    pub(super) fn rests(&self) -> bool {
        let until = self.backs_off_until.load(Ordering::Relaxed);
        until != 0 && self.since_created(Duration::ZERO) < until
    }

    /// It is chosen. When its rest has just ended, whoever chose it finds out for the others whether it is back: they
    /// go elsewhere as long.
    pub(super) fn note_chosen(&self) {
        let until = self.backs_off_until.load(Ordering::Relaxed);
        if until != 0 && !self.rests() {
            self.backs_off_until.store(self.since_created(REST), Ordering::Relaxed);
        }
    }

    fn has_returned(&self) {
        self.returned.store(self.since_created(Duration::ZERO), Ordering::Relaxed);
    }

    /// How much of its share it is to get, in thousandths: less for a while after it returned.
    pub(super) fn warmth(&self) -> u16 {
        let returned = self.returned.load(Ordering::Relaxed);
        if returned == 0 {
            return FULL;
        }
        let warming = u64::try_from(WARMING.as_micros()).unwrap_or(u64::MAX);
        let share =
            self.since_created(Duration::ZERO).saturating_sub(returned).saturating_mul(u64::from(FULL)) / warming;
        let share = u16::try_from(share).unwrap_or(FULL);
        if share >= FULL {
            self.returned.store(0, Ordering::Relaxed);
        }
        share.clamp(LEAST_WARMTH, FULL)
    }

    /// Microseconds from its creation to `ahead` of now; never zero.
    fn since_created(&self, ahead: Duration) -> u64 {
        u64::try_from((self.created.elapsed() + ahead).as_micros()).unwrap_or(u64::MAX).max(1)
    }
}

impl ServerAddress {
    pub(super) fn of(location: &ServerUrl) -> Self {
        let default = if location.verified_as.is_some() { HTTPS_PORT } else { HTTP_PORT };
        let port = location.authority.port_u16().unwrap_or(default);
        let host = bare_host(&location.authority);
        match host.parse::<IpAddr>() {
            Ok(address) => Self::Address(SocketAddr::new(address, port)),
            Err(_) => Self::Name { host: host.to_owned(), port },
        }
    }
}

/// One request at a server, until it is dropped.
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

/// The host of an authority, an IPv6 address without its brackets.
pub fn bare_host(authority: &Authority) -> &str {
    let host = authority.host();
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

/// Long enough to spare most requests the way to a dead server, short enough to notice that it lives.
const REST: Duration = Duration::from_secs(1);

/// So many requests in a row that were not answered are the server's fault, not theirs.
const FAILING: u32 = 3;

/// So many refusals in a row were no hiccup.
const ABSENT: u32 = 3;

/// How long a server that returned gets less than its share.
const WARMING: Duration = Duration::from_secs(10);

/// The whole share, in thousandths, and what it begins with.
pub(super) const FULL: u16 = 1000;
const LEAST_WARMTH: u16 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(authority: &str, expected: &str) {
        let place = ServerAddress::of(&authority.parse::<Authority>().unwrap().into());
        let place = match place {
            ServerAddress::Address(address) => format!("address {address}"),
            ServerAddress::Name { host, port } => format!("name {host} {port}"),
        };
        assert_eq!(place, expected);
    }

    #[test]
    fn addresses_are_not_looked_up() {
        check("10.0.1.5:8000", "address 10.0.1.5:8000");
        check("10.0.1.5", "address 10.0.1.5:80");
        check("[2001:db8::1]:81", "address [2001:db8::1]:81");
        check("app.internal:8000", "name app.internal 8000");
    }
}
