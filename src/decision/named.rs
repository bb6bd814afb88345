//! A key told by its hash: as people may see it.

use super::Entry;
use super::Plan;
use super::plan::Applied;
use super::plan::apply;
use super::source::with_source;
use crate::key::Hashers;
use crate::key::KeyHash;
use crate::key::NamedKey;
use crate::limit::LimitId;

impl Plan<'_, '_> {
    /// The key that this request has under that limit and that hashes to `key`; `None`: it has no such key.
    ///
    /// Extracts the key once more: plans keep no values, and this is asked of few requests.
    pub fn named(&self, Hashers { counted, shown }: &Hashers, limit: LimitId, key: KeyHash) -> Option<NamedKey> {
        let Entry { policy, head, ref walk, .. } = self.entry;
        let limit = policy.limit(limit);
        with_source(policy, head, self.fields, walk, |source| {
            let Ok(Applied::Counted(keys)) = apply(policy, limit, source) else { return None };
            let found = keys.iter().find(|candidate| counted.hash(&limit.name, &candidate.key) == key)?;
            Some(NamedKey::of(&limit.key, &found.key, shown))
        })
    }
}
