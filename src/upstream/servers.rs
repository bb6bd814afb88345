//! The servers of one upstream, which change with reloads and with the addresses of their names.

use std::hash::Hasher;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use http::HeaderValue;
use http::uri::Authority;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use siphasher::sip::SipHasher13;
use tokio::sync::Notify;

use super::server::Server;
use crate::upstream::server::{FULL_SHARE, ServerAddress, ServerId};
use crate::upstream::stream::{ServerTls, ServerVerification};
use crate::words::word::words;

/// One upstream, shared by all cores: which of its servers are healthy, and how busy each is.
#[derive(Debug)]
pub struct Upstream {
    pub(super) settings: UpstreamSettings,
    /// In the order of the settings. A name with several addresses is several servers.
    servers: ArcSwap<Vec<Arc<Server>>>,
    /// The TLS of new servers.
    tls: Option<ClientConfig>,
    /// Notified when `servers` has changed.
    pub(super) changed: Notify,
    /// The turns so far, for round robin.
    pub(super) turn: AtomicU64,
}

fn new_server(
    settings: &UpstreamSettings,
    url: &ServerUrl,
    address: ServerAddress,
    tls: Option<&ClientConfig>,
) -> Arc<Server> {
    let tls = tls.zip(url.verified_as.as_ref()).map(|(tls, host)| {
        let name = settings.tls.server_name.as_ref().unwrap_or(host);
        ServerTls::new(tls, name.clone())
    });
    Arc::new(Server::new(url, address, tls, settings.http2))
}

// Chooses the server for a request.

impl Upstream {
    pub fn new(settings: UpstreamSettings) -> Arc<Self> {
        Self::with(settings, |_| Vec::new())
    }

    /// Takes over the servers that `known` has for a URL, and makes a new one where it has none.
    fn with(settings: UpstreamSettings, known: impl Fn(&ServerUrl) -> Vec<Arc<Server>>) -> Arc<Self> {
        let has_tls = settings.servers.iter().any(|url| url.verified_as.is_some());
        let tls = has_tls.then(|| settings.tls.client_config());
        let servers = settings.servers.iter().flat_map(|url| {
            let mut servers = known(url);
            if servers.is_empty() {
                servers.push(new_server(&settings, url, ServerAddress::of(url), tls.as_ref()));
            }
            servers
        });
        let servers: Vec<Arc<Server>> = servers.collect();
        let turn = servers.iter().map(|server| server.turn.load(Ordering::Relaxed)).max().unwrap_or_default();
        let servers = ArcSwap::from_pointee(servers);
        Arc::new(Self { settings, servers, tls, changed: Notify::new(), turn: AtomicU64::new(turn) })
    }

    /// The upstream of these settings after a reload. If nothing changed it is the old one, with its servers' health and
    /// connections. Otherwise it takes over the servers that stay, where that is safe.
    pub fn carry_over(settings: UpstreamSettings, old: &[Arc<Self>]) -> Arc<Self> {
        let Some(old) = old.iter().find(|old| old.settings.name == settings.name) else {
            return Self::new(settings);
        };
        if old.settings == settings {
            return Arc::clone(old);
        }
        // Without health checks an unhealthy server would stay unhealthy. A connection that was verified under another
        // name or authority must not be used under this one.
        let may_take_over = old.settings.health.is_some() == settings.health.is_some()
            && old.settings.tls == settings.tls
            && old.settings.http2 == settings.http2
            // A connection of HTTP/2 has its bounds from its beginning.
            && (!settings.http2 || old.settings.heads == settings.heads);
        let known = if may_take_over { old.servers() } else { Arc::default() };
        Self::with(settings, |url| known.iter().filter(|known| known.url == *url).cloned().collect())
    }

    /// Closes the connections to servers that are in `before` and not in `in_use`.
    pub fn close_removed(before: &[Arc<Self>], in_use: &[Arc<Self>]) {
        let servers = |upstreams: &[Arc<Self>]| -> Vec<Arc<Server>> {
            upstreams.iter().flat_map(|upstream| upstream.servers().to_vec()).collect()
        };
        Server::close_removed(&servers(before), &servers(in_use));
    }

    pub fn settings(&self) -> &UpstreamSettings {
        &self.settings
    }

    /// In the order of the settings. The servers of one name stand together, and all have that name.
    pub fn servers(&self) -> Arc<Vec<Arc<Server>>> {
        self.servers.load_full()
    }

    /// Whether a server of this name, as written in the configuration, is well: it is healthy, and no failure has put it
    /// behind the others since it answered last.
    pub fn is_well(&self, name: &str) -> bool {
        self.servers.load().iter().any(|server| **server.name() == *name && server.is_healthy() && !server.is_failing())
    }

    pub(super) fn load_servers(&self) -> arc_swap::Guard<Arc<Vec<Arc<Server>>>> {
        self.servers.load()
    }

    pub(super) fn replace_servers(&self, servers: Vec<Arc<Server>>) {
        Server::close_removed(&self.servers.load(), &servers);
        self.servers.store(Arc::new(servers));
        self.changed.notify_one();
    }

    pub(super) fn new_server(&self, url: &ServerUrl, address: ServerAddress) -> Arc<Server> {
        new_server(&self.settings, url, address, self.tls.as_ref())
    }
}

impl Upstream {
    /// The server for the next attempt, not one of `tried`. `None`: no other server is healthy.
    ///
    /// A server that backs off is chosen only when there is no other. A server in its slow start is chosen less often.
    pub(super) fn pick(&self, tried: &[ServerId], client: IpAddr) -> Option<Arc<Server>> {
        let servers = self.load_servers();
        loop {
            let (rank, chosen) = self.first(&servers, tried, client)?;
            if self.settings.balance == Balance::RoundRobin {
                let turn = self.turn.fetch_add(1, Ordering::Relaxed) + 1;
                // Another core has just chosen this server: the next server is to be chosen.
                if chosen.turn.compare_exchange(rank.load, turn, Ordering::Relaxed, Ordering::Relaxed).is_err() {
                    continue;
                }
            }
            chosen.note_chosen();
            return Some(Arc::clone(chosen));
        }
    }

    fn first<'s>(
        &self,
        servers: &'s [Arc<Server>],
        tried: &[ServerId],
        client: IpAddr,
    ) -> Option<(Rank, &'s Arc<Server>)> {
        let count = servers.len();
        let start = match self.settings.balance {
            // Begins anywhere: otherwise every core would choose the first of equals.
            Balance::LeastRequests if count > 1 => fastrand::usize(..count),
            Balance::LeastRequests | Balance::RoundRobin | Balance::ClientIp => 0,
        };
        let candidates = (0..count).map(|step| &servers[(start + step) % count]);
        let candidates = candidates.filter(|server| server.is_healthy() && !tried.contains(&server.id));
        let ranked = candidates.map(|server| {
            let share = server.slow_start_share();
            let (is_skipped, load) = match self.settings.balance {
                Balance::LeastRequests => (is_skipped(share), server.in_flight() as u64),
                // The server that has waited longest: what one server does not get, the others share evenly.
                Balance::RoundRobin => (is_skipped(share), server.turn.load(Ordering::Relaxed)),
                Balance::ClientIp => {
                    let weight = weight(server, client);
                    // Always the same clients wait, so that each moves back to its server once.
                    (weight % u64::from(FULL_SHARE) >= u64::from(share), u64::MAX - weight)
                }
            };
            (Rank { backs_off: server.backs_off(), is_skipped, load }, server)
        });
        ranked.min_by_key(|(rank, _)| *rank)
    }

    /// Whether there is a healthy server that is not in `tried`.
    pub(super) fn has_other(&self, tried: &[ServerId]) -> bool {
        self.load_servers().iter().any(|server| server.is_healthy() && !tried.contains(&server.id))
    }
}

/// The reasons against a server, the strongest first.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
struct Rank {
    backs_off: bool,
    is_skipped: bool,
    load: u64,
}

/// Whether a server in its slow start leaves this request to the others.
fn is_skipped(share: u16) -> bool {
    share < FULL_SHARE && fastrand::u16(..FULL_SHARE) >= share
}

/// Rendezvous hashing: a client goes to the server with the highest weight. It is the same on every gateway and after every
/// start, and only the clients of a server that leaves move.
fn weight(server: &Server, client: IpAddr) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(server.name().as_bytes());
    if let Some(address) = server.resolved() {
        hasher.write(address.to_string().as_bytes());
    }
    match client {
        IpAddr::V4(address) => hasher.write(&address.octets()),
        // A client has a whole /64, and changes addresses in it.
        IpAddr::V6(address) => hasher.write(&address.octets()[..8]),
    }
    hasher.finish()
}

// The settings of upstreams.

/// The prefix of the name of a server on a Unix socket.
pub const UNIX_SOCKET: &str = "unix:";

/// The settings of one upstream. Comparable, so that a reload keeps unchanged parts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UpstreamSettings {
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

/// The parts of a server's URL.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ServerUrl {
    pub location: Location,
    /// For `https://`: the name that the server's certificate must be for.
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

words! {
    /// Which server gets the next request.
    #[derive(Default)]
    pub enum Balance {
        #[default]
        LeastRequests = "least_requests",
        RoundRobin = "round_robin",
        /// A client stays with its server.
        ClientIp = "client_ip",
    }
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

impl Timeouts {
    pub const DEFAULT: Self =
        Self { connect: Duration::from_secs(2), response: Duration::from_secs(60), idle: Duration::from_secs(60) };
}

impl Default for Timeouts {
    fn default() -> Self {
        Self::DEFAULT
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
    /// The `Host` of the checks. `None`: the `Host` of requests, or the server's name.
    pub host: Option<HeaderValue>,
    pub every: Duration,
    pub timeout: Duration,
    /// So many good answers in a row make a server healthy.
    pub healthy: u32,
    /// So many bad answers in a row make a server unhealthy.
    pub unhealthy: u32,
}

/// Where the configuration leaves them out.
impl HealthCheck {
    pub const EVERY: Duration = Duration::from_secs(5);
    pub const TIMEOUT: Duration = Duration::from_secs(2);
    pub const HEALTHY: u32 = 2;
    pub const UNHEALTHY: u32 = 3;
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::uri::Authority;

    use super::*;
    use crate::upstream::error::FailureCause;
    use crate::upstream::{HeadBounds, HostHeader, ServerVerification, Timeouts, UpstreamSettings};

    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn upstream(balance: Balance, servers: usize) -> Arc<Upstream> {
        Upstream::new(UpstreamSettings {
            name: "app".into(),
            servers: (0..servers)
                .map(|index| format!("127.0.0.{}:80", index + 1).parse::<Authority>().unwrap().into())
                .collect(),
            balance,
            host: HostHeader::Preserve,
            timeouts: Timeouts::default(),
            heads: HeadBounds::default(),
            health: None,
            tls: ServerVerification::default(),
            http2: false,
            max_idle: None,
        })
    }

    /// The position of the server that is picked.
    fn pick(upstream: &Upstream, tried: &[usize], client: IpAddr) -> Option<usize> {
        let servers = upstream.servers();
        let tried: Vec<ServerId> = tried.iter().map(|index| servers[*index].id).collect();
        let picked = upstream.pick(&tried, client)?;
        servers.iter().position(|server| server.id == picked.id)
    }

    #[test]
    fn round_robin_takes_one_after_the_other() {
        let upstream = upstream(Balance::RoundRobin, 3);
        let picks: Vec<_> = (0..6).map(|_| pick(&upstream, &[], CLIENT).unwrap()).collect();
        assert_eq!(picks, [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn round_robin_without_one_of_three_is_even() {
        let upstream = upstream(Balance::RoundRobin, 3);
        upstream.servers()[2].note_not_connected(&FailureCause::ConnectTimeout);
        let picks: Vec<_> = (0..6).map(|_| pick(&upstream, &[], CLIENT).unwrap()).collect();
        assert_eq!(picks, [0, 1, 0, 1, 0, 1]);
        let settings = UpstreamSettings {
            timeouts: Timeouts { idle: Duration::ZERO, ..Timeouts::default() },
            ..upstream.settings.clone()
        };
        let upstream = Upstream::carry_over(settings, &[upstream]);
        let picks: Vec<_> = (0..6).map(|_| pick(&upstream, &[], CLIENT).unwrap()).collect();
        assert_eq!(picks, [0, 1, 0, 1, 0, 1]);
    }

    #[test]
    fn round_robin_is_even_when_many_choose_at_once() {
        let upstream = upstream(Balance::RoundRobin, 3);
        let picks: Vec<usize> = std::thread::scope(|scope| {
            let choose = || (0..300).map(|_| pick(&upstream, &[], CLIENT).unwrap()).collect::<Vec<_>>();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(choose)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        for server in 0..3 {
            let share = picks.iter().filter(|index| **index == server).count();
            assert!((396..=404).contains(&share), "{share}");
        }
    }

    #[test]
    fn least_requests_takes_the_least_busy() {
        let upstream = upstream(Balance::LeastRequests, 3);
        let _zero = upstream.servers()[0].begin_request();
        let _two = upstream.servers()[2].begin_request();
        assert_eq!(pick(&upstream, &[], CLIENT), Some(1));
    }

    #[test]
    fn equals_all_get_their_share() {
        let upstream = upstream(Balance::LeastRequests, 3);
        let mut picks = [0; 3];
        (0..300).for_each(|_| picks[pick(&upstream, &[], CLIENT).unwrap()] += 1);
        assert!(picks.iter().all(|share| *share > 50), "{picks:?}");
    }

    #[test]
    fn an_unhealthy_server_gets_nothing() {
        let upstream = upstream(Balance::RoundRobin, 2);
        upstream.servers()[0].set_healthy(false);
        assert_eq!([(); 2].map(|()| pick(&upstream, &[], CLIENT)), [Some(1), Some(1)]);
        upstream.servers()[1].set_healthy(false);
        assert_eq!(pick(&upstream, &[], CLIENT), None);
    }

    #[test]
    fn a_server_that_gave_no_connection_is_the_last_choice_and_never_none() {
        let upstream = upstream(Balance::RoundRobin, 2);
        upstream.servers()[0].note_not_connected(&FailureCause::ConnectTimeout);
        assert_eq!([(); 2].map(|()| pick(&upstream, &[], CLIENT)), [Some(1), Some(1)]);
        assert_eq!(pick(&upstream, &[1], CLIENT), Some(0));
        assert_eq!(pick(&upstream, &[0, 1], CLIENT), None);
    }

    #[tokio::test(start_paused = true)]
    async fn only_one_request_finds_out_whether_a_server_is_back() {
        let upstream = upstream(Balance::RoundRobin, 2);
        upstream.servers()[0].note_not_connected(&FailureCause::ConnectTimeout);
        tokio::time::advance(Duration::from_millis(1100)).await;
        let picks: Vec<_> = (0..10).map(|_| pick(&upstream, &[], CLIENT).unwrap()).collect();
        assert_eq!(picks.iter().filter(|index| **index == 0).count(), 1, "{picks:?}");
        upstream.servers()[0].note_connected();
        let picks: Vec<_> = (0..10).map(|_| pick(&upstream, &[], CLIENT).unwrap()).collect();
        assert_eq!(picks.iter().filter(|index| **index == 0).count(), 5, "{picks:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_returned_gets_more_and_more() {
        let upstream = upstream(Balance::LeastRequests, 2);
        upstream.servers()[0].set_healthy(false);
        upstream.servers()[0].set_healthy(true);
        let share = || (0..1000).filter(|_| pick(&upstream, &[], CLIENT) == Some(0)).count();
        let shares = [
            share(),
            {
                tokio::time::advance(Duration::from_secs(5)).await;
                share()
            },
            {
                tokio::time::advance(Duration::from_secs(6)).await;
                share()
            },
        ];
        assert!((10..150).contains(&shares[0]), "{shares:?}");
        assert!((150..400).contains(&shares[1]), "{shares:?}");
        assert!((400..600).contains(&shares[2]), "{shares:?}");
    }

    #[test]
    fn a_client_stays_with_its_server_and_only_those_of_one_that_leaves_move() {
        let upstream = upstream(Balance::ClientIp, 4);
        let clients: Vec<IpAddr> =
            (0..1000_u32).map(|index| std::net::Ipv4Addr::from(0x0a00_0000 + index).into()).collect();
        let all = || -> Vec<usize> { clients.iter().map(|client| pick(&upstream, &[], *client).unwrap()).collect() };
        let before = all();
        assert_eq!(before, all());
        for server in 0..4 {
            let share = before.iter().filter(|index| **index == server).count();
            assert!((150..350).contains(&share), "{share}");
        }
        upstream.servers()[2].set_healthy(false);
        let without = all();
        for (before, after) in before.iter().zip(&without) {
            assert!(if *before == 2 { *after != 2 } else { before == after });
        }
    }

    #[test]
    fn a_client_has_its_whole_network_of_ipv6() {
        let upstream = upstream(Balance::ClientIp, 8);
        let picks = |address: &str| pick(&upstream, &[], address.parse().unwrap());
        assert_eq!(picks("2001:db8::1"), picks("2001:db8::ffff:2"));
    }
}
