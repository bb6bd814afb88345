//! The settings of one listener, shared by all cores. They may change while the cores accept connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use arc_swap::ArcSwap;
use arc_swap::Guard;

use super::Tls;
use super::tls;
use super::tls::TlsSetupError;
use crate::client::TrustedProxies;

/// A listener as it is configured.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListenerConfig {
    pub address: SocketAddr,
    pub settings: ListenerSettings,
}

/// What connections to a listener must use.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ListenerSettings {
    /// Only these proxies may connect, and each connection begins with a PROXY header.
    pub proxy_protocol: Option<TrustedProxies>,
    /// Connections use TLS.
    pub tls: Option<tls::Settings>,
}

/// The settings, prepared so that applying them cannot fail.
#[derive(Debug, Default)]
pub struct ListenerRuntime {
    pub(super) proxy_protocol: Option<TrustedProxies>,
    pub(super) tls: Option<Arc<Tls>>,
}

impl ListenerRuntime {
    /// Prepares settings. TLS that has not changed is taken over from `before`.
    pub fn prepare(settings: ListenerSettings, before: Option<&ListenerState>) -> Result<Self, TlsSetupError> {
        let before = before.map(|state| state.runtime.load_full());
        let before = before.as_ref().and_then(|before| before.tls.as_ref());
        let tls = settings.tls.map(|settings| Tls::new(settings, before)).transpose()?;
        Ok(Self { proxy_protocol: settings.proxy_protocol, tls })
    }

    pub fn requires_proxy_protocol(&self) -> bool {
        self.proxy_protocol.is_some()
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
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ListenerChange {
    /// Whether a PROXY header is required now; `None`: as before.
    pub proxy_protocol: Option<bool>,
    /// TLS has changed, or was switched on or off.
    pub tls: bool,
}

/// The current settings of a listener.
#[derive(Debug, Default)]
pub struct ListenerState {
    runtime: ArcSwap<ListenerRuntime>,
    /// A rejected connection has been logged.
    has_logged_rejection: AtomicBool,
}

impl ListenerState {
    pub fn new(runtime: ListenerRuntime) -> Self {
        Self { runtime: ArcSwap::from_pointee(runtime), has_logged_rejection: AtomicBool::new(false) }
    }

    /// Applies new settings to new connections.
    pub fn change(&self, runtime: ListenerRuntime) -> ListenerChange {
        let required = runtime.requires_proxy_protocol();
        let runtime = Arc::new(runtime);
        let before = self.runtime.swap(Arc::clone(&runtime));
        if before.proxy_protocol != runtime.proxy_protocol {
            self.has_logged_rejection.store(false, Ordering::Relaxed);
        }
        ListenerChange {
            proxy_protocol: (before.requires_proxy_protocol() != required).then_some(required),
            tls: !before.has_same_tls(&runtime),
        }
    }

    pub(super) fn runtime(&self) -> Guard<Arc<ListenerRuntime>> {
        self.runtime.load()
    }

    /// Whether this is the first rejection under these settings. One log line is enough for an operator, and one for each
    /// connection would let anyone fill the disk.
    pub(super) fn is_first_rejection(&self) -> bool {
        !self.has_logged_rejection.swap(true, Ordering::Relaxed)
    }
}
