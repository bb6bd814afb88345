//! A key told by its hash: as people may see it.

use super::Entry;
use super::plan::Applied;
use super::plan::apply;
use super::plan::with_source;
use crate::key::Hashers;
use crate::key::KeyHash;
use crate::key::NamedKey;
use crate::limit::LimitId;
use crate::request::Fields;

impl Entry<'_, '_> {
    /// The key that this request has under that limit and that hashes to `key`; `None`: it has no such key.
    ///
    /// Reads the request once more: plans keep no values, and this is asked of few requests.
    pub fn named(
        &self,
        fields: &Fields,
        Hashers { counted, shown }: &Hashers,
        limit: LimitId,
        key: KeyHash,
    ) -> Option<NamedKey> {
        let limit = self.policy.limit(limit);
        let walk = self.walk(fields);
        with_source(self.policy, self.head, fields, &walk, |source| {
            let Ok(Applied::Counted(keys)) = apply(self.policy, limit, source) else { return None };
            let found = keys.iter().find(|candidate| counted.hash(&limit.name, &candidate.key) == key)?;
            Some(NamedKey::of(&limit.key, &found.key, shown))
        })
    }
}
