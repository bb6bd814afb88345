//! The settings of one listener, shared by all cores. They may change while the cores accept connections.

use std::net::IpAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use arc_swap::Guard;
use parking_lot::Mutex;

use super::Connections;
use super::ListenAddress;
use super::Tls;
use super::tls;
use super::tls::NameExpiries;
use super::tls::TlsSetupError;
use crate::client::ClientIp;
use crate::client::Networks;
use crate::client::Prefix;
use crate::client::TrustedProxies;

/// A listener as it is configured.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListenerConfig {
    pub address: ListenAddress,
    /// Who may connect to a Unix socket, as permissions of its file; `None`: its user and group.
    pub mode: Option<u32>,
    pub settings: ListenerSettings,
}

/// What connections to a listener must use.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ListenerSettings {
    /// Only these proxies may connect, and each connection begins with a PROXY header.
    pub proxy_protocol: Option<TrustedProxies>,
    /// The listener answers these proxies, which ask for decisions, and nobody else; `None`: it forwards requests.
    pub askers: Option<Networks>,
    /// Connections use TLS.
    pub tls: Option<tls::Settings>,
}

/// The settings, prepared so that applying them cannot fail.
#[derive(Debug, Default)]
pub struct ListenerRuntime {
    pub(super) proxy_protocol: Option<TrustedProxies>,
    pub(super) askers: Option<Arc<Networks>>,
    pub(super) tls: Option<Arc<Tls>>,
    /// Those that were accepted since the listener serves what it serves.
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

    /// What `later` serves otherwise.
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

/// What a listener requires since a change.
#[derive(Debug)]
pub struct ListenerChange {
    /// Whether a PROXY header is required now; `None`: as before.
    pub proxy_protocol: Option<bool>,
    /// What it serves otherwise, and the connections that are still served as before. They are to be drained.
    pub serves: Option<(ServesChange, Connections)>,
    /// TLS has changed, or was switched on or off.
    pub tls: bool,
}

/// What a listener serves since a change.
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
    /// `connections` are to hold what is accepted.
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

/// The proxies of one site share a network.
const PEER_NETWORK: Prefix = Prefix { v4: 24, v6: 64 };

/// More networks than that are a scan.
const MAX_LOGGED_NETWORKS: usize = 16;
