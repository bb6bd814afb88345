//! What is counted of one key.

use std::collections::HashMap;
use std::collections::HashSet;
use std::sync::Arc;

use crate::clock::Timestamp;
use crate::key::KeyHash;
use crate::key::OperatorKey;

/// The requests of one key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyCounts {
    pub key: Arc<OperatorKey>,
    pub requests: u64,
    pub denied: u64,
    /// Its first request, and its last one.
    pub first: Timestamp,
    pub last: Timestamp,
}

/// By which count keys are ordered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Order {
    Requests,
    Denied,
}

impl Order {
    pub fn count(self, counts: &KeyCounts) -> u64 {
        match self {
            Self::Requests => counts.requests,
            Self::Denied => counts.denied,
        }
    }
}

impl KeyCounts {
    /// Adds what was counted elsewhere, or at another time.
    pub fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.denied += other.denied;
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
    }
}

/// The counts of several keys.
#[derive(Clone, Debug, Default)]
pub struct CountsByKey(pub(super) HashMap<KeyHash, KeyCounts>);

impl CountsByKey {
    /// Adds what was counted of a key.
    pub(super) fn add(&mut self, key: KeyHash, counts: &KeyCounts) {
        self.0.entry(key).and_modify(|known| known.merge(counts)).or_insert_with(|| counts.clone());
    }

    pub(super) fn add_all(&mut self, other: &Self) {
        for (key, counts) in &other.0 {
            self.add(*key, counts);
        }
    }

    /// Keeps the keys with the most requests and those with the most denials, `most` of each.
    pub(super) fn keep_heaviest(&mut self, most: usize) {
        if self.0.len() <= most {
            return;
        }
        let mut kept = HashSet::new();
        for order in [Order::Requests, Order::Denied] {
            let weights = self.0.iter().map(|(key, counts)| (order.count(counts), *key));
            let mut heaviest: Vec<_> = weights.filter(|(count, _)| *count > 0).collect();
            heaviest.sort_unstable_by(|one, other| other.cmp(one));
            kept.extend(heaviest.into_iter().take(most).map(|(_, key)| key));
        }
        self.0.retain(|key, _| kept.contains(key));
    }

    /// The busiest of these keys; of equal ones the one that came last.
    pub fn busiest(self, order: Order, most: usize) -> Vec<KeyCounts> {
        let mut sorted: Vec<_> = self.0.into_iter().filter(|(_, counts)| order.count(counts) > 0).collect();
        sorted.sort_unstable_by(|(key, one), (other_key, other)| {
            let weight = |counts: &KeyCounts| (order.count(counts), counts.last);
            weight(other).cmp(&weight(one)).then(key.cmp(other_key))
        });
        sorted.into_iter().take(most).map(|(_, counts)| counts).collect()
    }
}
