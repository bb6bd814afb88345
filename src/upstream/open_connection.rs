//! How many connections to servers this process has, against the descriptors that it may open.

use std::sync::LazyLock;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use rustix::process::Resource;
use rustix::process::getrlimit;

/// Counts a connection until it is dropped.
#[derive(Debug)]
pub(super) struct OpenConnection(());

impl OpenConnection {
    pub(super) fn count() -> Self {
        COUNT.fetch_add(1, Ordering::Relaxed);
        Self(())
    }

    /// Whether there are so many that none is to be kept for later: the other half of the descriptors is for clients.
    pub(super) fn are_too_many() -> bool {
        COUNT.load(Ordering::Relaxed) > *MOST
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Ordering::Relaxed);
    }
}

static COUNT: AtomicUsize = AtomicUsize::new(0);

static MOST: LazyLock<usize> = LazyLock::new(|| {
    let descriptors = getrlimit(Resource::Nofile).current.and_then(|most| usize::try_from(most).ok());
    descriptors.map_or(usize::MAX, |descriptors| (descriptors / 2).saturating_sub(OTHERS))
});

/// What else a process has open: its runtimes, listeners, files, connections to Redis.
const OTHERS: usize = 64;
