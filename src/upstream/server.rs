//! One server of an upstream: where it is, whether it is well, how busy it is.

use std::fmt;
use std::net::IpAddr;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::uri::Authority;
use tokio::time::Instant;

/// A server, shared by all cores.
#[derive(Debug)]
pub struct Server {
    name: Arc<str>,
    pub(super) id: ServerId,
    pub(super) place: Place,
    in_flight: AtomicUsize,
    healthy: AtomicBool,
    /// Microseconds from `created` to the end of its rest; zero: none.
    rests_until: AtomicU64,
    created: Instant,
}

/// Tells servers apart, over reloads too.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct ServerId(u64);

/// Where a server is.
#[derive(Debug)]
pub(super) enum Place {
    Address(SocketAddr),
    /// A name is looked up for each connection: it may move.
    Name {
        host: String,
        port: u16,
    },
}

impl Server {
    pub(super) fn new(authority: &Authority) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            name: authority.as_str().into(),
            id: ServerId(NEXT.fetch_add(1, Ordering::Relaxed)),
            place: Place::of(authority),
            in_flight: AtomicUsize::new(0),
            healthy: AtomicBool::new(true),
            rests_until: AtomicU64::new(0),
            created: Instant::now(),
        }
    }

    /// As written in the configuration.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// What health checks say; healthy without them.
    pub fn is_healthy(&self) -> bool {
        self.healthy.load(Ordering::Relaxed)
    }

    pub(super) fn set_healthy(&self, healthy: bool) {
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
    pub(super) fn rest(&self) {
        let until = (self.created.elapsed() + REST).as_micros();
        self.rests_until.store(u64::try_from(until).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn rests(&self) -> bool {
        let until = self.rests_until.load(Ordering::Relaxed);
        if until == 0 {
            return false;
        }
        let rests = self.created.elapsed() < Duration::from_micros(until);
        if !rests {
            self.rests_until.store(0, Ordering::Relaxed);
        }
        rests
    }
}

impl Place {
    fn of(authority: &Authority) -> Self {
        let port = authority.port_u16().unwrap_or(HTTP_PORT);
        let host = authority.host();
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        match bare.parse::<IpAddr>() {
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

const HTTP_PORT: u16 = 80;

/// Long enough to spare most requests the way to a dead server, short enough to notice that it lives.
const REST: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(authority: &str, expected: &str) {
        let place = Place::of(&authority.parse().unwrap());
        let place = match place {
            Place::Address(address) => format!("address {address}"),
            Place::Name { host, port } => format!("name {host} {port}"),
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
