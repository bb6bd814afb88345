//! A server, shared by all cores of a process.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use tokio::sync::Notify;

use crate::store::redis::transport::breaker::Breaker;
use crate::store::redis::transport::breaker::BreakerState;
use crate::store::redis::transport::breaker::DownCause;
use crate::store::redis::transport::url::Address;

#[derive(Debug)]
pub(in crate::store::redis) struct RedisNode {
    pub(in crate::store::redis) address: Address,
    breaker: Breaker,
    /// Wakes the monitor: the breaker has opened, or the server is retired.
    pub(in crate::store::redis) changed: Notify,
    /// A probe has been tried at least once.
    pub(in crate::store::redis) probed: AtomicBool,
    retired: AtomicBool,
    /// How many keys it had when the monitor asked last.
    pub(in crate::store::redis) keys: AtomicU64,
}

impl RedisNode {
    pub(in crate::store::redis) fn new(address: Address) -> Self {
        Self {
            address,
            breaker: Breaker::default(),
            changed: Notify::new(),
            probed: AtomicBool::new(false),
            retired: AtomicBool::new(false),
            keys: AtomicU64::new(0),
        }
    }

    pub(in crate::store::redis) fn state(&self) -> BreakerState {
        self.breaker.state()
    }

    pub(in crate::store::redis) fn is_up(&self) -> bool {
        self.state().cause.is_none()
    }

    /// A call of `generation` failed. Returns whether the server was up until now.
    pub(in crate::store::redis) fn fail(&self, generation: u64, cause: DownCause) -> bool {
        let went_down = self.breaker.open(generation, cause);
        if went_down {
            self.changed.notify_one();
        }
        went_down
    }

    /// A probe failed: the server is down for this cause. Returns whether it was up until now.
    pub(in crate::store::redis) fn stay_down(&self, cause: DownCause) -> bool {
        let went_down = self.breaker.open(self.state().generation, cause);
        if !went_down {
            self.breaker.explain(cause);
        }
        went_down
    }

    pub(in crate::store::redis) fn recover(&self) {
        self.breaker.close();
    }

    /// The server has no slots any more.
    pub(in crate::store::redis) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
        self.changed.notify_one();
    }

    pub(in crate::store::redis) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }
}
