//! Finds the readable form of a key by its hash.

use super::Plan;
use super::RoutedRequest;
use super::charges::LimitApplication;
use super::charges::apply;
use super::source::with_source;
use crate::key::DisplayKey;
use crate::key::Hashers;
use crate::key::KeyHash;
use crate::limit::LimitId;

impl Plan<'_, '_> {
    /// The key of this request under this limit that hashes to `key`; `None`: there is no such key.
    ///
    /// Extracts the keys again: a plan keeps no values, and few requests need this.
    pub fn display_key(
        &self,
        Hashers { counted, shown }: &Hashers,
        limit: LimitId,
        key: KeyHash,
    ) -> Option<DisplayKey> {
        let RoutedRequest { policy, head, ref walk, .. } = self.entry;
        let limit = policy.limit(limit);
        with_source(policy, head, self.fields, walk, |source| {
            let Ok(LimitApplication::Counted(keys)) = apply(policy, limit, source) else { return None };
            let found = keys.iter().find(|candidate| counted.hash(&limit.name, &candidate.key) == key)?;
            Some(DisplayKey::of(&limit.key, &found.key, shown))
        })
    }
}
