//! Reservations that wait for their outcome, as their keys know of them.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;

/// What is known in this process of the reservations of one key that wait for their outcome.
#[derive(Debug, Default)]
pub struct Waiting {
    /// How many tickets there are.
    tickets: AtomicU32,
    /// How often the key was reset while anyone looked.
    resets: AtomicU32,
}

/// A look at a key from before something is charged to it: what is reset from now on is known to whoever holds this.
#[derive(Debug)]
pub struct Watch {
    key: Arc<Waiting>,
    resets: u32,
}

/// A reservation that waits for its outcome, until this and its clones are dropped: so it ends with its request,
/// whatever ends that.
#[derive(Debug)]
pub struct Ticket(Watch);

impl Waiting {
    pub fn watch(self: &Arc<Self>) -> Watch {
        Watch { key: Arc::clone(self), resets: self.resets.load(Ordering::Acquire) }
    }

    /// Whether any reservation waits.
    pub fn is_some(&self) -> bool {
        self.tickets.load(Ordering::Acquire) > 0
    }

    /// What was counted is forgotten; what those who wait have charged, too.
    pub fn reset(&self) {
        self.resets.fetch_add(1, Ordering::AcqRel);
    }
}

impl Watch {
    /// It was charged.
    pub fn reserve(self) -> Ticket {
        self.key.tickets.fetch_add(1, Ordering::AcqRel);
        Ticket(self)
    }
}

impl Ticket {
    /// Whether the key was reset since, so that what was charged is forgotten already.
    pub fn was_reset(&self) -> bool {
        self.0.resets != self.0.key.resets.load(Ordering::Acquire)
    }
}

impl Clone for Ticket {
    fn clone(&self) -> Self {
        Watch { key: Arc::clone(&self.0.key), resets: self.0.resets }.reserve()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.key.tickets.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Tickets of one key are one as good as the other.
impl PartialEq for Ticket {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0.key, &other.0.key) && self.0.resets == other.0.resets
    }
}

impl Eq for Ticket {}
