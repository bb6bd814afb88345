//! The connections of one core to the servers, kept between requests.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;
use std::{future, mem};

use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::http2::Http2Pool;
use crate::upstream::connect::{OpenConnection, descriptor_shortages};
use crate::upstream::http1::Http1Connection;
use crate::upstream::server::{IdlePlace, ServerId};
use crate::upstream::servers::Upstream;
use crate::wire::head::{Fields, KnownName, NameSet};

/// The connections of one core.
#[derive(Debug, Default)]
pub struct Pool {
    pub(super) idle: Arc<IdleConnections>,
    pub(super) http2: Arc<Http2Pool>,
}

impl Pool {
    pub fn new() -> Self {
        Self::default()
    }
}

// Connections of HTTP/1.1 without a request.

/// How exactly an idle timeout is kept.
const TICK: Duration = Duration::from_millis(250);

/// In ticks: how long a connection is unused at least before it counts as left behind by a burst.
const PERIOD: u64 = 8;

/// So many connections of one core to one server are kept until they expire, whether or not they are needed.
const FEW: usize = 256;

/// The idle connections of one core. Only that core takes the lock, which the compiler asks for.
#[derive(Debug)]
pub(super) struct IdleConnections {
    state: Mutex<IdleState>,
}

#[derive(Debug)]
struct IdleState {
    servers: HashMap<ServerId, ServerConnections>,
    /// How often [`sweep`] came by: a clock that is exact enough here, and free to read.
    tick: u64,
    is_sweeping: bool,
    /// The [`descriptor_shortages`] at the last sweep.
    shortages: u64,
}

/// As many idle connections as were in use at once lately.
#[derive(Debug, Default)]
struct ServerConnections {
    /// The connection that was used last is used first, so that the connections at the front are the unused ones.
    idle: VecDeque<IdleConnection>,
    /// The lowest number of idle connections in this period: this many were not needed.
    unused: usize,
    /// Requests whose own connection takes long to be made.
    takers: VecDeque<oneshot::Sender<Box<Http1Connection>>>,
}

#[derive(Debug)]
struct IdleConnection {
    link: Box<Http1Connection>,
    expires: u64,
    /// Where the server has a bound for all cores.
    _place: Option<IdlePlace>,
}

impl Default for IdleConnections {
    fn default() -> Self {
        let state = IdleState { servers: HashMap::new(), tick: 0, is_sweeping: false, shortages: 0 };
        Self { state: Mutex::new(state) }
    }
}

impl IdleConnections {
    /// A connection that the server has not closed, as far as is known.
    pub(super) fn take(&self, server: ServerId) -> Option<Box<Http1Connection>> {
        let mut state = self.state.lock();
        let connections = state.servers.get_mut(&server)?;
        let ready = loop {
            let Some(mut newest) = connections.idle.pop_back() else { break None };
            if newest.link.is_ready() {
                break Some(newest.link);
            }
        };
        connections.unused = connections.unused.min(connections.idle.len());
        ready
    }

    /// An idle connection, or the next one to this server that becomes idle.
    pub(super) async fn take_next(self: &Arc<Self>, server: ServerId) -> Box<Http1Connection> {
        if let Some(idle) = self.take(server) {
            return idle;
        }
        let (taker, next) = oneshot::channel();
        {
            let mut state = self.state.lock();
            let takers = &mut state.servers.entry(server).or_default().takers;
            // They give up in the order in which they came, more or less.
            while takers.front().is_some_and(oneshot::Sender::is_closed) {
                takers.pop_front();
            }
            takers.push_back(taker);
            self.sweep_from_now_on(&mut state);
        }
        match next.await {
            Ok(link) => link,
            // A descriptor was missing, so that no connection is kept.
            Err(_) => future::pending().await,
        }
    }

    /// Hands a connection to a request that waits for one. Otherwise keeps it, if the server and the descriptors of the process
    /// have room for it.
    pub(super) fn put(self: &Arc<Self>, mut link: Box<Http1Connection>) {
        let mut state = self.state.lock();
        let tick = state.tick;
        let connections = state.servers.entry(link.server.id).or_default();
        while let Some(taker) = connections.takers.pop_front() {
            match taker.send(link) {
                Ok(()) => return,
                Err(back) => link = back,
            }
        }
        let place = match link.max_idle {
            None => None,
            Some(most) => match IdlePlace::take(&link.server, most) {
                Some(place) => Some(place),
                None => return,
            },
        };
        if OpenConnection::are_too_many() {
            return;
        }
        let ticks = link.idle.as_millis().div_ceil(TICK.as_millis());
        let expires = tick.saturating_add(u64::try_from(ticks).unwrap_or(u64::MAX));
        connections.idle.push_back(IdleConnection { link, expires, _place: place });
        self.sweep_from_now_on(&mut state);
    }

    /// Sweeps as long as there is anything that ends.
    fn sweep_from_now_on(self: &Arc<Self>, state: &mut IdleState) {
        if !state.is_sweeping {
            state.is_sweeping = true;
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Closes connections that expired, that their server closed, whose server was removed, or that a burst has left behind.
    /// Closes all of them if a descriptor was missing on any core. Returns false when none is left.
    fn sweep(&self) -> bool {
        let mut state = self.state.lock();
        state.tick += 1;
        let tick = state.tick;
        let shortages = descriptor_shortages();
        if shortages != mem::replace(&mut state.shortages, shortages) {
            state.servers.clear();
        }
        state.servers.retain(|_, connections| {
            connections.idle.retain_mut(|idle| {
                idle.expires >= tick && !idle.link.server.removed.is_cancelled() && idle.link.is_ready()
            });
            if tick.is_multiple_of(PERIOD) {
                connections.close_unused();
            }
            connections.takers.retain(|taker| !taker.is_closed());
            !connections.idle.is_empty() || !connections.takers.is_empty()
        });
        state.is_sweeping = !state.servers.is_empty();
        state.is_sweeping
    }
}

impl ServerConnections {
    /// Closes half of the connections that this period did not need, and begins the next one. [`FEW`] stay until they
    /// expire.
    fn close_unused(&mut self) {
        let surplus = self.idle.len().saturating_sub(FEW);
        self.idle.drain(..self.unused.div_ceil(2).min(surplus));
        self.unused = self.idle.len();
    }
}

async fn sweep(idle: Weak<IdleConnections>) {
    loop {
        sleep(TICK).await;
        if !idle.upgrade().is_some_and(|idle| idle.sweep()) {
            return;
        }
    }
}

// Connections to servers that belong to one client.
//
// NTLM and Negotiate authenticate a connection and not a request ([RFC 4559], section 6): every request over it acts as
// its user. From the first such challenge or credentials on, a connection carries the requests of one client alone, and
// ends with it.
//
// [RFC 4559]: https://www.rfc-editor.org/rfc/rfc4559

const SIGNING_IN: NameSet = NameSet::of(&[
    KnownName::AUTHORIZATION,
    KnownName::PROXY_AUTHORIZATION,
    KnownName::WWW_AUTHENTICATE,
    KnownName::PROXY_AUTHENTICATE,
]);

const SCHEMES: [&[u8]; 3] = [b"ntlm", b"negotiate", b"kerberos"];

/// A client of a few applications behind one gateway has one for each.
const MOST: usize = 8;

/// The client that sends a request.
pub trait Client: Sync {
    /// Matters where it decides which server is chosen.
    fn address(&self) -> IpAddr;

    /// The connections that belong to it, where there are any.
    fn own_connections(&self) -> Option<Arc<OwnConnections>>;

    /// The connections of a client, created if it has none. `None`: its requests do not come in order on one
    /// connection, so no connection can belong to it.
    fn own_connections_or_new(&self) -> Option<Arc<OwnConnections>>;
}

/// The idle connections that belong to one client. Connections in use are held by their answers.
#[derive(Debug, Default)]
#[expect(clippy::vec_box, reason = "answers have them boxed, and give them back as they are")]
pub struct OwnConnections(Mutex<Vec<Box<Http1Connection>>>);

impl OwnConnections {
    /// The one to a server of this upstream, unless it has ended.
    pub(super) fn take(&self, upstream: &Upstream) -> Option<Box<Http1Connection>> {
        let servers = upstream.load_servers();
        let mut idle = self.0.lock();
        idle.retain_mut(|link| !link.server.removed.is_cancelled() && link.is_ready());
        let at = idle.iter().position(|link| servers.iter().any(|server| server.id == link.server.id))?;
        Some(idle.swap_remove(at))
    }

    /// Keeps a connection, if the client and the descriptors of the process have room for it.
    pub(super) fn put(&self, link: Box<Http1Connection>) {
        let mut idle = self.0.lock();
        if idle.len() < MOST && !OpenConnection::are_too_many() {
            idle.push(link);
        }
    }
}

/// Whether the head of a request or of an answer has credentials or a challenge of a scheme that signs in the connection.
pub(super) fn signs_connection_in(fields: &Fields) -> bool {
    // Most heads have none of these.
    fields.has_any(SIGNING_IN)
        && fields
            .among(SIGNING_IN)
            .flat_map(|name| fields.get_all(name))
            .flat_map(|line| line.split(|byte| *byte == b','))
            .filter_map(|challenge| challenge.trim_ascii_start().split(|byte| !byte.is_ascii_alphanumeric()).next())
            .any(|scheme| SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_that_sign_in_a_connection_are_known_however_they_are_written() {
        let signs_in = |name: KnownName, value: &str| signs_connection_in(&[(name, value)].into_iter().collect());
        for value in
            ["NTLM", "negotiate", "Negotiate oYG2", "NTLM TlRM", "Basic realm=\"a\", ntlm", "Basic realm=a,Negotiate"]
        {
            assert!(signs_in(KnownName::WWW_AUTHENTICATE, value), "{value}");
            assert!(signs_in(KnownName::AUTHORIZATION, value), "{value}");
        }
        for value in ["Basic bnRsbTo=", "Bearer ntlm", "Digest realm=\"NTLM\"", "NTLMx", ""] {
            assert!(!signs_in(KnownName::AUTHORIZATION, value), "{value}");
        }
        assert!(!signs_in(KnownName::COOKIE, "NTLM"));
    }
}
