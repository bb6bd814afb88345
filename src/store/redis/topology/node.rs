//! A server, as all cores of a process know it.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use tokio::sync::Notify;

use crate::store::redis::transport::breaker::Breaker;
use crate::store::redis::transport::breaker::Cause;
use crate::store::redis::transport::breaker::State;
use crate::store::redis::transport::url::Address;

#[derive(Debug)]
pub(in crate::store::redis) struct Node {
    pub(in crate::store::redis) address: Address,
    breaker: Breaker,
    /// Wakes who tends to it: its breaker opened, or it is to be asked no more.
    pub(in crate::store::redis) stirred: Notify,
    /// It was probed once, whatever came of it.
    pub(in crate::store::redis) met: AtomicBool,
    retired: AtomicBool,
    /// How many keys it held when it was asked last.
    pub(in crate::store::redis) keys: AtomicU64,
}

impl Node {
    pub(in crate::store::redis) fn new(address: Address) -> Self {
        Self {
            address,
            breaker: Breaker::default(),
            stirred: Notify::new(),
            met: AtomicBool::new(false),
            retired: AtomicBool::new(false),
            keys: AtomicU64::new(0),
        }
    }

    pub(in crate::store::redis) fn state(&self) -> State {
        self.breaker.state()
    }

    pub(in crate::store::redis) fn is_up(&self) -> bool {
        self.state().cause.is_none()
    }

    /// Something asked for in `generation` failed.
    pub(in crate::store::redis) fn fail(&self, generation: u64, cause: Cause) {
        if self.breaker.open(generation, cause) {
            self.stirred.notify_one();
        }
    }

    /// A probe failed: so it is away, and that is why.
    pub(in crate::store::redis) fn stay_away(&self, cause: Cause) {
        if !self.breaker.open(self.state().generation, cause) {
            self.breaker.explain(cause);
        }
    }

    pub(in crate::store::redis) fn recover(&self) {
        self.breaker.close();
    }

    /// It has no slots any more.
    pub(in crate::store::redis) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
        self.stirred.notify_one();
    }

    pub(in crate::store::redis) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }
}
