//! All bans by id and by network, and when each can be removed.

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::collections::VecDeque;

use super::ban::BanId;
use super::ban::BanRecord;
use super::ban::BanSubject;
use super::networks::Networks;
use crate::clock::Timestamp;

/// All bans by id and by network, and when each can be removed.
#[derive(Debug, Default)]
pub(super) struct BanIndex {
    pub(super) entries: HashMap<BanId, BanEntry>,
    pub(super) networks: Networks,
    /// When each ban can be removed. Bans by limits make room for new ones when the table is full, bans by operators do
    /// not.
    by_limits: BTreeSet<(Timestamp, BanId)>,
    by_operators: BTreeSet<(Timestamp, BanId)>,
    /// How many bans were written or removed here so far.
    pub(super) writes: u64,
    /// The latest that were removed, each with the number of its removal. Some of them may be back.
    removed: VecDeque<(u64, BanId)>,
    /// The number of the last removal that is not among them.
    removed_before: u64,
}

#[derive(Clone, Debug)]
pub(super) struct BanEntry {
    pub(super) record: BanRecord,
    /// Redis does not have it yet.
    pub(super) is_unsent: bool,
    /// The number of the write that made it what it is.
    pub(super) written: u64,
}

/// How many bans are remembered at most, also in Redis: about 600 bytes each.
pub(in crate::store) const MOST_BANS: usize = 100_000;

/// More than a snapshot misses, unless all bans are replaced.
const MOST_REMOVED: usize = 10_000;

impl BanIndex {
    pub(super) fn lasting(&self, now: Timestamp) -> impl Iterator<Item = &BanEntry> {
        self.entries.values().filter(move |entry| entry.record.ban.until > now)
    }

    /// `false`: the table is full, and operators have set all bans in it.
    pub(super) fn insert(&mut self, record: BanRecord, is_unsent: bool, now: Timestamp) -> bool {
        let id = record.ban.id;
        self.remove(id);
        if self.entries.len() >= MOST_BANS {
            self.remove_expired(now);
        }
        while self.entries.len() >= MOST_BANS {
            let Some((_, first)) = self.by_limits.first().copied() else { return false };
            self.remove(first);
        }
        if let BanSubject::Address(network) = record.ban.subject {
            self.networks.insert(network, record.ban.until);
        }
        let ends = if record.ban.by_operator { &mut self.by_operators } else { &mut self.by_limits };
        ends.insert((record.expires(), id));
        self.writes += 1;
        self.entries.insert(id, BanEntry { record, is_unsent, written: self.writes });
        true
    }

    pub(super) fn remove(&mut self, id: BanId) -> Option<BanEntry> {
        let entry = self.entries.remove(&id)?;
        self.writes += 1;
        self.note_removed(id);
        if let BanSubject::Address(network) = entry.record.ban.subject {
            self.networks.remove(network);
        }
        let end = (entry.record.expires(), id);
        self.by_limits.remove(&end);
        self.by_operators.remove(&end);
        Some(entry)
    }

    fn note_removed(&mut self, id: BanId) {
        self.removed.push_back((self.writes, id));
        if self.removed.len() > MOST_REMOVED
            && let Some((number, _)) = self.removed.pop_front()
        {
            self.removed_before = number;
        }
    }

    /// The bans that were removed since that many writes, and are not back; `None`: there were too many.
    pub(super) fn removed_since(&self, writes: u64) -> Option<Vec<BanId>> {
        if writes < self.removed_before {
            return None;
        }
        let first = self.removed.partition_point(|(number, _)| *number <= writes);
        let removed = self.removed.range(first..).map(|(_, id)| *id);
        Some(removed.filter(|id| !self.entries.contains_key(id)).collect())
    }

    /// The ban that can be removed first, and when.
    pub(super) fn first(&self) -> Option<(Timestamp, BanId)> {
        let firsts = [&self.by_limits, &self.by_operators].map(|ends| ends.first().copied());
        firsts.into_iter().flatten().min()
    }

    pub(super) fn remove_expired(&mut self, now: Timestamp) {
        while let Some((expires, id)) = self.first()
            && expires <= now
        {
            self.remove(id);
        }
    }
}
