//! A server, as all cores of a process know it.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use tokio::sync::Notify;

use super::breaker::Breaker;
use super::breaker::Cause;
use super::breaker::State;
use super::url::Address;

#[derive(Debug)]
pub(super) struct Node {
    pub(super) address: Address,
    breaker: Breaker,
    /// Wakes who tends to it: its breaker opened, or it is to be asked no more.
    pub(super) stirred: Notify,
    /// It was probed once, whatever came of it.
    pub(super) met: AtomicBool,
    retired: AtomicBool,
    /// How many keys it held when it was asked last.
    pub(super) keys: AtomicU64,
}

impl Node {
    pub(super) fn new(address: Address) -> Self {
        Self {
            address,
            breaker: Breaker::default(),
            stirred: Notify::new(),
            met: AtomicBool::new(false),
            retired: AtomicBool::new(false),
            keys: AtomicU64::new(0),
        }
    }

    pub(super) fn state(&self) -> State {
        self.breaker.state()
    }

    pub(super) fn is_up(&self) -> bool {
        self.state().cause.is_none()
    }

    /// Something asked for in `generation` failed.
    pub(super) fn fail(&self, generation: u64, cause: Cause) {
        if self.breaker.open(generation, cause) {
            self.stirred.notify_one();
        }
    }

    /// A probe failed: so it is away, and that is why.
    pub(super) fn stay_away(&self, cause: Cause) {
        if !self.breaker.open(self.state().generation, cause) {
            self.breaker.explain(cause);
        }
    }

    pub(super) fn recover(&self) {
        self.breaker.close();
    }

    /// It has no slots any more.
    pub(super) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
        self.stirred.notify_one();
    }

    pub(super) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }
}
