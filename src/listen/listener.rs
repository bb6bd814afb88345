//! What is asked of those who come in at one address, for all cores: it may change while they accept.

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

/// An address where clients come in.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListenerConfig {
    pub address: SocketAddr,
    pub settings: ListenerSettings,
}

/// What is asked of a connection before anything is said on it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ListenerSettings {
    /// It is from one of these, and begins with a header of the PROXY protocol.
    pub proxy_protocol: Option<TrustedProxies>,
    /// It is encrypted.
    pub tls: Option<tls::Settings>,
}

/// The settings, ready to be met: nothing of them can fail any more.
#[derive(Debug, Default)]
pub struct ListenerRuntime {
    pub(super) proxy_protocol: Option<TrustedProxies>,
    pub(super) tls: Option<Arc<Tls>>,
}

impl ListenerRuntime {
    /// Makes settings ready. What is the same as at this door until now is taken over from there.
    pub fn prepare(settings: ListenerSettings, before: Option<&ListenerState>) -> Result<Self, TlsSetupError> {
        let before = before.map(|door| door.runtime.load_full());
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

/// What a door asks that it did not ask before.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Changed {
    /// Whether a PROXY header is required from now on, where that is new.
    pub proxy_protocol: Option<bool>,
    /// TLS is another, or is spoken from now on, or no more.
    pub tls: bool,
}

/// The settings in force.
#[derive(Debug, Default)]
pub struct ListenerState {
    runtime: ArcSwap<ListenerRuntime>,
    /// That someone was turned away has been told.
    told: AtomicBool,
}

impl ListenerState {
    pub fn new(runtime: ListenerRuntime) -> Self {
        Self { runtime: ArcSwap::from_pointee(runtime), told: AtomicBool::new(false) }
    }

    /// Asks this of those who come from now on.
    pub fn change(&self, runtime: ListenerRuntime) -> Changed {
        let required = runtime.requires_proxy_protocol();
        let runtime = Arc::new(runtime);
        let before = self.runtime.swap(Arc::clone(&runtime));
        if before.proxy_protocol != runtime.proxy_protocol {
            self.told.store(false, Ordering::Relaxed);
        }
        Changed {
            proxy_protocol: (before.requires_proxy_protocol() != required).then_some(required),
            tls: !before.has_same_tls(&runtime),
        }
    }

    pub(super) fn runtime(&self) -> Guard<Arc<ListenerRuntime>> {
        self.runtime.load()
    }

    /// Whether this is the first one turned away on these settings: one line tells an operator, and one for each would let
    /// anyone fill the disk.
    pub(super) fn is_first_turned_away(&self) -> bool {
        !self.told.swap(true, Ordering::Relaxed)
    }
}
