//! A key told by its hash: as people may see it.

use super::Plan;
use super::RoutedRequest;
use super::plan::LimitApplication;
use super::plan::apply;
use super::source::with_source;
use crate::key::DisplayKey;
use crate::key::Hashers;
use crate::key::KeyHash;
use crate::limit::LimitId;

impl Plan<'_, '_> {
    /// The key that this request has under that limit and that hashes to `key`; `None`: it has no such key.
    ///
    /// Extracts the key once more: plans keep no values, and this is asked of few requests.
    pub fn named(&self, Hashers { counted, shown }: &Hashers, limit: LimitId, key: KeyHash) -> Option<DisplayKey> {
        let RoutedRequest { policy, head, ref walk, .. } = self.entry;
        let limit = policy.limit(limit);
        with_source(policy, head, self.fields, walk, |source| {
            let Ok(LimitApplication::Counted(keys)) = apply(policy, limit, source) else { return None };
            let found = keys.iter().find(|candidate| counted.hash(&limit.name, &candidate.key) == key)?;
            Some(DisplayKey::of(&limit.key, &found.key, shown))
        })
    }
}
