//! The settings of one listener, shared by all cores. They may change while the cores accept connections.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;

use super::tls::{NameExpiries, TlsSetupError};
use super::{Connections, ListenAddress, Tls, tls};
use crate::rules::client::{ClientIp, Networks, Prefix, TrustedProxies};

/// The proxies of one site share a network.
const PEER_NETWORK: Prefix = Prefix { v4: 24, v6: 64 };

/// More networks than that are a scan.
const MAX_LOGGED_NETWORKS: usize = 16;

/// A listener as it is configured.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListenerConfig {
    pub address: ListenAddress,
    /// The permissions of a Unix socket's file, which decide who may connect; `None`: [`MODE`](Self::MODE).
    pub mode: Option<u32>,
    pub settings: ListenerSettings,
}

impl ListenerConfig {
    /// The gateway's user and group may connect.
    pub const MODE: u32 = 0o660;
}

/// The requirements on connections to a listener.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ListenerSettings {
    /// Only these proxies may connect, and each connection begins with a PROXY header.
    pub proxy_protocol: Option<TrustedProxies>,
    /// The listener only answers these proxies, which ask for decisions; `None`: it forwards requests.
    pub askers: Option<Networks>,
    /// Connections use TLS.
    pub tls: Option<tls::TlsSettings>,
}

/// The settings, prepared so that applying them cannot fail.
#[derive(Debug, Default)]
pub struct ListenerRuntime {
    pub(super) proxy_protocol: Option<TrustedProxies>,
    pub(super) askers: Option<Arc<Networks>>,
    pub(super) tls: Option<Arc<Tls>>,
    /// The connections that were accepted with the current settings of the listener.
    pub(super) connections: Connections,
}

impl ListenerRuntime {
    /// Prepares settings. TLS that has not changed is taken over from `before`.
    pub fn prepare(settings: ListenerSettings, before: Option<&ListenerState>) -> Result<Self, TlsSetupError> {
        let before = before.map(|state| state.runtime.load_full());
        let before = before.as_ref().and_then(|before| before.tls.as_ref());
        let tls = settings.tls.clone().map(|settings| Tls::new(settings, before)).transpose()?;
        let ListenerSettings { proxy_protocol, askers, .. } = settings;
        Ok(Self { proxy_protocol, askers: askers.map(Arc::new), tls, connections: Connections::default() })
    }

    pub fn requires_proxy_protocol(&self) -> bool {
        self.proxy_protocol.is_some()
    }

    /// The difference between this and `later` in what they serve.
    fn serves_change(&self, later: &Self) -> Option<ServesChange> {
        match (&self.askers, &later.askers) {
            (Some(_), None) => Some(ServesChange::Requests),
            (None, Some(_)) => Some(ServesChange::Decisions),
            (before, now) => (before != now).then_some(ServesChange::OtherAskers),
        }
    }

    fn has_same_tls(&self, other: &Self) -> bool {
        match (&self.tls, &other.tls) {
            (None, None) => true,
            (Some(tls), Some(other)) => Arc::ptr_eq(tls, other),
            _ => false,
        }
    }
}

/// The change of a listener.
#[derive(Debug)]
pub struct ListenerChange {
    /// Whether a PROXY header is required now; `None`: as before.
    pub proxy_protocol: Option<bool>,
    /// The new kind of service, and the connections with the old one, which must be drained.
    pub serves: Option<(ServesChange, Connections)>,
    /// TLS has changed, or was switched on or off.
    pub tls: bool,
}

/// The new kind of service of a listener.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ServesChange {
    /// It forwards requests, and answered proxies that ask before.
    Requests,
    /// It answers proxies that ask, and forwarded requests before.
    Decisions,
    /// It answers other proxies.
    OtherAskers,
}

/// The current settings of a listener, and its connections.
#[derive(Debug)]
pub struct ListenerState {
    runtime: ArcSwap<ListenerRuntime>,
    /// All that were accepted here.
    connections: Connections,
    /// The networks of peers whose rejection has been logged.
    logged_rejections: Mutex<Vec<IpAddr>>,
}

impl ListenerState {
    /// Accepted connections go into `connections`.
    pub fn new(runtime: ListenerRuntime, connections: Connections) -> Self {
        let runtime = ListenerRuntime { connections: connections.part(), ..runtime };
        Self { runtime: ArcSwap::from_pointee(runtime), connections, logged_rejections: Mutex::default() }
    }

    /// Applies new settings to new connections.
    pub fn change(&self, mut runtime: ListenerRuntime) -> ListenerChange {
        let required = runtime.requires_proxy_protocol();
        let before = self.runtime.load_full();
        let serves = before.serves_change(&runtime);
        runtime.connections = match serves {
            Some(_) => self.connections.part(),
            None => before.connections.clone(),
        };
        let runtime = Arc::new(runtime);
        self.runtime.store(Arc::clone(&runtime));
        if before.proxy_protocol != runtime.proxy_protocol || serves.is_some() {
            self.logged_rejections.lock().clear();
        }
        ListenerChange {
            proxy_protocol: (before.requires_proxy_protocol() != required).then_some(required),
            serves: serves.map(|serves| (serves, before.connections.clone())),
            tls: !before.has_same_tls(&runtime),
        }
    }

    /// When what clients are shown for each name ends.
    pub fn name_expiries(&self) -> NameExpiries {
        self.runtime.load().tls.as_ref().map(|tls| tls.name_expiries().clone()).unwrap_or_default()
    }

    /// All that were accepted here.
    pub fn connections(&self) -> &Connections {
        &self.connections
    }

    pub(super) fn runtime(&self) -> Guard<Arc<ListenerRuntime>> {
        self.runtime.load()
    }

    /// Whether this is the first rejection of a peer in this network under these settings. One log line is enough for an
    /// operator, and one for each connection would let anyone fill the disk.
    pub(super) fn is_first_rejection(&self, peer: IpAddr) -> bool {
        let network = PEER_NETWORK.cut(ClientIp::new(peer));
        let mut logged = self.logged_rejections.lock();
        if logged.len() >= MAX_LOGGED_NETWORKS || logged.contains(&network) {
            return false;
        }
        logged.push(network);
        true
    }
}

// The bounds of connections.

/// Open connections keep the settings that they began with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConnectionSettings {
    /// From the first byte of a head, or the start of a connection, to the end of the head.
    pub header: Duration,
    /// Between two requests.
    pub keepalive: Duration,
    /// Reading or writing a body without progress.
    pub body_idle: Duration,
    /// The least bytes per second that a client must read while data waits for it, over each `body_idle` after the first;
    /// zero: no minimum.
    pub body_rate: u32,
    /// How long requests in progress may take once the gateway is stopping.
    pub drain: Duration,
    /// Before that: how long the gateway serves as before, but reports that it is not ready.
    pub lame_duck: Duration,
    pub max_header_bytes: usize,
    pub max_headers: usize,
    /// Zero: as many as descriptors allow.
    pub max_connections: usize,
    /// Zero: no bound.
    pub max_connections_per_client: usize,
    /// Lines of a head over HTTP/1.1 may end in LF without CR.
    pub accepts_bare_line_feeds: bool,
}

impl ConnectionSettings {
    pub const DEFAULT: Self = Self {
        header: Duration::from_secs(10),
        keepalive: Duration::from_secs(75),
        body_idle: Duration::from_secs(30),
        body_rate: 100,
        drain: Duration::from_secs(30),
        lame_duck: Duration::ZERO,
        max_header_bytes: 64 << 10,
        max_headers: 100,
        max_connections: 0,
        max_connections_per_client: 0,
        accepts_bare_line_feeds: false,
    };
}
