//! The keys that are known now.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use tokio::sync::Notify;

use crate::jwt::KeySet;

/// A set of keys, replaced as a whole, and how its source is. All workers share it.
#[derive(Debug, Default)]
pub struct LiveKeys {
    /// `None`: none was fetched yet.
    set: ArcSwapOption<KeySet>,
    /// A token names a key that is not in the set.
    unknown: Notify,
    /// Why the set could not be fetched the last time.
    failure: ArcSwapOption<KeyFailure>,
}

/// Why a set of keys could not be had.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeyFailure {
    /// Where the set comes from.
    pub source: String,
    pub reason: String,
}

impl LiveKeys {
    pub fn of(set: Arc<KeySet>) -> Self {
        Self { set: ArcSwapOption::new(Some(set)), ..Self::default() }
    }

    /// The set in force.
    pub fn set(&self) -> Option<Arc<KeySet>> {
        self.set.load_full()
    }

    /// Puts a set in force. One that is equal to that in force changes nothing: tokens that were verified stay so.
    pub fn replace(&self, set: KeySet) {
        self.failure.store(None);
        if self.set.load().as_deref() != Some(&set) {
            self.set.store(Some(Arc::new(set)));
        }
    }

    /// The set stays, because there is none to replace it with.
    pub fn fail(&self, failure: KeyFailure) {
        self.failure.store(Some(Arc::new(failure)));
    }

    /// Why the set could not be fetched the last time; `None`: it could.
    pub fn failure(&self) -> Option<Arc<KeyFailure>> {
        self.failure.load_full()
    }

    /// A token names a key that is not in the set: perhaps there is a new one.
    pub(super) fn miss(&self) {
        self.unknown.notify_one();
    }

    /// Waits until a token names a key that is not in the set. Returns at once if one has since the last time.
    pub async fn missed(&self) {
        self.unknown.notified().await;
    }
}
