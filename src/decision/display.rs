//! Finds the readable form of a key by its hash.

use super::Plan;
use super::RoutedRequest;
use super::charges::LimitApplication;
use super::charges::apply;
use super::source::with_source;
use crate::key::DisplayKey;
use crate::key::Hashers;
use crate::key::Key;
use crate::key::KeyHash;
use crate::key::KeySpec;
use crate::key::OperatorKey;
use crate::limit::LimitId;

impl Plan<'_, '_> {
    /// The key of this request under this limit that hashes to `key`; `None`: there is no such key.
    ///
    /// Extracts the keys again: a plan keeps no values, and few requests need this.
    pub fn display_key(&self, hashers: &Hashers, limit: LimitId, key: KeyHash) -> Option<DisplayKey> {
        self.with_key(hashers, limit, key, |spec, key| DisplayKey::of(spec, key, &hashers.shown))
    }

    /// The same for the admin API.
    pub fn operator_key(&self, hashers: &Hashers, limit: LimitId, key: KeyHash) -> Option<OperatorKey> {
        self.with_key(hashers, limit, key, |spec, key| OperatorKey::of(spec, key, &hashers.shown))
    }

    /// The keys that the store is asked about, and the limit of each.
    pub fn counted_keys(&self) -> impl Iterator<Item = (LimitId, KeyHash)> {
        let limit = |number: u16| self.charges.limits[usize::from(number)].limit;
        self.batch().charges.iter().map(move |charge| (limit(charge.limit), charge.key))
    }

    fn with_key<T>(
        &self,
        Hashers { counted, .. }: &Hashers,
        limit: LimitId,
        key: KeyHash,
        then: impl FnOnce(&KeySpec, &Key) -> T,
    ) -> Option<T> {
        let RoutedRequest { policy, head, ref walk, .. } = self.entry;
        let limit = policy.limit(limit);
        with_source(policy, head, self.fields, walk, |source| {
            let Ok(LimitApplication::Counted(keys)) = apply(policy, limit, source) else { return None };
            let found = keys.iter().find(|candidate| counted.hash(&limit.name, &candidate.key) == key)?;
            Some(then(&limit.key, &found.key))
        })
    }
}
