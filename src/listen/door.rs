//! What is asked of those who come in at one address, for all cores: it may change while they accept.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use arc_swap::ArcSwap;
use arc_swap::Guard;

use crate::client::TrustedProxies;

/// An address where clients come in.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entrance {
    pub address: SocketAddr,
    pub terms: Terms,
}

/// What is asked of a connection before anything is said on it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Terms {
    /// It is from one of these, and begins with a header of the PROXY protocol.
    pub proxy_protocol: Option<TrustedProxies>,
}

/// The terms in force.
#[derive(Debug, Default)]
pub struct Door {
    terms: ArcSwap<Terms>,
    /// That someone was turned away has been told.
    told: AtomicBool,
}

impl Door {
    pub fn new(terms: Terms) -> Self {
        Self { terms: ArcSwap::from_pointee(terms), told: AtomicBool::new(false) }
    }

    /// Asks this of those who come from now on.
    pub fn change(&self, terms: Terms) {
        if **self.terms.load() != terms {
            self.terms.store(Arc::new(terms));
            self.told.store(false, Ordering::Relaxed);
        }
    }

    pub fn terms(&self) -> Guard<Arc<Terms>> {
        self.terms.load()
    }

    /// Whether this is the first one turned away on these terms: one line tells an operator, and one for each would let
    /// anyone fill the disk.
    pub(super) fn is_first_turned_away(&self) -> bool {
        !self.told.swap(true, Ordering::Relaxed)
    }
}
