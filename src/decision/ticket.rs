//! Reservations that wait for their outcome, as their keys know of them.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use crate::clock::Timestamp;

/// What is known in this process of the reservations of one key that wait for their outcome.
#[derive(Debug, Default)]
pub struct Waiting {
    /// How many tickets there are.
    tickets: AtomicU32,
    /// How many look, and may have a ticket any moment.
    watches: AtomicU32,
    /// How often the key was reset while anyone looked.
    resets: AtomicU32,
    /// What a shared store has charged up to this moment of its clock was forgotten by one of them, in us.
    until: AtomicU64,
}

/// A look at a key from before something is charged to it until that is decided: what is reset from now on is known to
/// whoever holds this.
#[derive(Debug)]
pub struct Watch {
    key: Arc<Waiting>,
    resets: u32,
}

/// A reservation that waits for its outcome, until this and its clones are dropped: so it ends with its request,
/// whatever ends that.
#[derive(Debug)]
pub struct Ticket {
    key: Arc<Waiting>,
    resets: u32,
    /// When a shared store charged it, by its clock; `None`: it was charged in this process.
    charged: Option<Timestamp>,
}

impl Waiting {
    /// That of a key that was reset so many times before.
    pub fn after(resets: u32) -> Self {
        Self { resets: AtomicU32::new(resets), ..Self::default() }
    }

    pub fn watch(self: &Arc<Self>) -> Watch {
        self.watches.fetch_add(1, Ordering::AcqRel);
        Watch { key: Arc::clone(self), resets: self.resets.load(Ordering::Acquire) }
    }

    /// Whether any reservation waits.
    pub fn is_some(&self) -> bool {
        self.count() > 0
    }

    /// Whether any reservation waits, or a decision is under way that may make one.
    pub fn may_be_some(&self) -> bool {
        // In this order: a watch that becomes a ticket is one of them at any time.
        self.watches.load(Ordering::Acquire) > 0 || self.is_some()
    }

    /// How many reservations wait.
    pub fn count(&self) -> u32 {
        self.tickets.load(Ordering::Acquire)
    }

    /// How often the key was reset while anyone looked.
    pub fn resets(&self) -> u32 {
        self.resets.load(Ordering::Acquire)
    }

    /// What was counted is forgotten; what those who wait have charged, too. But what a shared store has charged after
    /// `until`, by its clock, is not: this may be heard of late. `None`: it is not known when that was.
    pub fn reset(&self, until: Option<Timestamp>) {
        self.until.fetch_max(until.map_or(u64::MAX, Timestamp::as_micros), Ordering::AcqRel);
        self.resets.fetch_add(1, Ordering::AcqRel);
    }
}

impl Watch {
    /// As if it had looked when the key was reset so many times.
    #[must_use]
    pub fn after(mut self, resets: u32) -> Self {
        self.resets = resets;
        self
    }

    /// It was charged in this process.
    pub fn reserve(self) -> Ticket {
        self.ticket(None)
    }

    /// It was charged by a shared store, at this moment of its clock.
    pub fn reserve_shared(self, charged: Timestamp) -> Ticket {
        self.ticket(Some(charged))
    }

    fn ticket(self, charged: Option<Timestamp>) -> Ticket {
        Ticket::new(&self.key, self.resets, charged)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.key.watches.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Ticket {
    fn new(key: &Arc<Waiting>, resets: u32, charged: Option<Timestamp>) -> Self {
        key.tickets.fetch_add(1, Ordering::AcqRel);
        Self { key: Arc::clone(key), resets, charged }
    }

    /// How often the key had been reset when this was charged.
    pub fn resets(&self) -> u32 {
        self.resets
    }

    /// Whether the key was reset since, so that what was charged is forgotten already.
    pub fn was_reset(&self) -> bool {
        let until = || self.key.until.load(Ordering::Acquire);
        self.resets != self.key.resets.load(Ordering::Acquire)
            && self.charged.is_none_or(|charged| charged.as_micros() <= until())
    }
}

impl Clone for Ticket {
    fn clone(&self) -> Self {
        Self::new(&self.key, self.resets, self.charged)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.key.tickets.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Tickets of one key are one as good as the other.
impl PartialEq for Ticket {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.key, &other.key) && self.resets == other.resets
    }
}

impl Eq for Ticket {}
