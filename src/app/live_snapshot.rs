//! The snapshot in force, and those before it that requests still hold.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::gateway::Snapshot;

/// The one place where the configuration in force is swapped.
#[derive(Debug)]
pub struct LiveSnapshot {
    current: Arc<ArcSwap<Snapshot>>,
    /// Kept until no request holds them, so that no core that serves has to free a list of a million lines.
    retired: Vec<Arc<Snapshot>>,
}

impl LiveSnapshot {
    pub fn new(snapshot: Snapshot) -> Self {
        Self { current: Arc::new(ArcSwap::from_pointee(snapshot)), retired: Vec::new() }
    }

    /// What the data plane reads from.
    pub fn shared(&self) -> Arc<ArcSwap<Snapshot>> {
        Arc::clone(&self.current)
    }

    pub fn load(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Requests that begin from here on are decided by `next`; those under way keep the snapshot they began with.
    pub fn replace(&mut self, next: Snapshot) {
        self.retired.push(self.current.swap(Arc::new(next)));
    }

    /// The retired snapshots that no request holds any more, to be dropped on a thread that serves no request.
    pub fn take_unused(&mut self) -> Vec<Arc<Snapshot>> {
        self.retired.extract_if(.., |snapshot| Arc::strong_count(snapshot) == 1).collect()
    }
}
