//! What is shown of a plan: its client, and the readable form of a key, found by its hash.

use std::net::IpAddr;

use super::Plan;
use super::RoutedRequest;
use super::charges::LimitApplication;
use super::charges::apply;
use super::source::with_source;
use crate::key::DisplayKey;
use crate::key::ExtractedKey;
use crate::key::Hashers;
use crate::key::Key;
use crate::key::KeyHash;
use crate::key::KeySpec;
use crate::key::OperatorKey;
use crate::limit::LimitId;

/// A plan whose keys can be shown.
pub trait ShownPlan {
    /// The client as keys and lists see it; `None`: a proxy asks, and names no client.
    fn client(&self) -> Option<IpAddr>;

    /// The keys that the store is asked about, and the limit of each.
    fn counted_keys(&self) -> impl Iterator<Item = (LimitId, KeyHash)>;

    /// Calls `then` with the key under this limit that hashes to `key`; `None`: there is no such key.
    fn with_key<T>(
        &self,
        hashers: &Hashers,
        limit: LimitId,
        key: KeyHash,
        then: impl FnOnce(&KeySpec, &Key) -> T,
    ) -> Option<T>;

    /// The key under this limit that hashes to `key`, as logs show it.
    fn display_key(&self, hashers: &Hashers, limit: LimitId, key: KeyHash) -> Option<DisplayKey> {
        self.with_key(hashers, limit, key, |spec, key| DisplayKey::of(spec, key, &hashers.shown))
    }

    /// The same as the admin API shows it.
    fn operator_key(&self, hashers: &Hashers, limit: LimitId, key: KeyHash) -> Option<OperatorKey> {
        self.with_key(hashers, limit, key, |spec, key| OperatorKey::of(spec, key, &hashers.shown))
    }
}

impl ShownPlan for Plan<'_, '_> {
    fn client(&self) -> Option<IpAddr> {
        Some(self.entry.head.client.address())
    }

    fn counted_keys(&self) -> impl Iterator<Item = (LimitId, KeyHash)> {
        self.charges.counted_keys()
    }

    /// Extracts the keys again: a plan keeps no values, and few requests need this.
    fn with_key<T>(
        &self,
        Hashers { counted, .. }: &Hashers,
        limit: LimitId,
        key: KeyHash,
        then: impl FnOnce(&KeySpec, &Key) -> T,
    ) -> Option<T> {
        let RoutedRequest { policy, head, ref walk, identity, .. } = self.entry;
        let limit = policy.limit(limit);
        with_source(policy, head, self.fields, walk, identity, |source| {
            let Ok(LimitApplication::Counted(extracted)) = apply(policy, limit, source) else { return None };
            let hash = |candidate: &ExtractedKey| counted.counted(&limit.name, &limit.key, &candidate.key);
            let found = extracted.keys.iter().find(|candidate| hash(candidate) == key)?;
            Some(then(&limit.key, &found.key))
        })
    }
}
