//! What a snapshot holds of a store, in the order in which it was written first.

use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::key::KeyHash;
use crate::signing::KeySeed;
use crate::store::bans::saved::SavedBan;
use crate::store::memory::ChangeMark;
use crate::store::memory::MemoryStore;

/// What a snapshot holds of a store, the sessions aside. Moments and spans are microseconds.
#[derive(Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct SnapshotContent {
    pub(super) secret: [u8; 16],
    pub(super) bans: Vec<SavedBan>,
    pub(super) seeds: Vec<(Timestamp, [u8; 32])>,
    /// The subject with the latest success last, and of each the latest client first.
    pub(super) known: Vec<(KeyHash, Vec<(u64, Timestamp)>)>,
}

impl SnapshotContent {
    pub(super) fn of(store: &MemoryStore) -> Self {
        let bans = store.bans().records().into_iter().map(|record| SavedBan::of(&record));
        Self {
            secret: store.secret(),
            bans: bans.collect(),
            seeds: seeds_of(store),
            known: store.known_clients_between(&ChangeMark::default(), &store.change_mark()).collect(),
        }
    }

    /// Replaces the bans, signing keys and known clients of the store.
    pub(super) fn put_into(self, store: &MemoryStore) {
        let before = store.bans().mark();
        self.bans.iter().filter_map(SavedBan::read).for_each(|record| store.bans().insert(record));
        store.bans().remove_unchanged_since(before);
        let seeds: Vec<KeySeed> = self.seeds.into_iter().map(|(made, secret)| KeySeed { made, secret }).collect();
        store.import_seeds(&seeds);
        store.restore_known_clients(self.known);
    }
}

/// All keys that the store signs with.
pub(super) fn seeds_of(store: &MemoryStore) -> Vec<(Timestamp, [u8; 32])> {
    let seeds = store.key_ring().load().own_seeds().into_iter();
    seeds.map(|seed| (seed.made, seed.secret)).collect()
}
