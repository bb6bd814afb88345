//! Which clients are known for which subject.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;

use parking_lot::Mutex;

use crate::rules::decision::batch::KnownClientKey;
use crate::rules::key::KeyHash;
use crate::words::clock::Timestamp;

/// The known clients of each subject, the latest first. Only a success makes a client known.
///
/// It has a bound of its own, because anyone can make up keys that are counted. When it is full, it drops the subject
/// whose last success is the longest ago.
#[derive(Debug)]
pub(super) struct KnownClientTable {
    most: usize,
    subjects: Mutex<Subjects>,
}

#[derive(Debug, Default)]
struct Subjects {
    clients: HashMap<KeyHash, SubjectClients>,
    /// Subjects in the order of their successes. Only the last entry of a subject counts.
    order: VecDeque<(u64, KeyHash)>,
    successes: u64,
    /// How often all of them were removed.
    clears: u64,
}

/// What was known at a moment, for [`KnownClientTable::some_between`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct KnownClientsMark {
    pub(super) successes: u64,
    pub(super) clears: u64,
}

/// A subject and its clients, the latest first, each with the time until which it is known.
pub(in crate::store) type KnownClients = (KeyHash, Vec<(u64, Timestamp)>);

#[derive(Debug)]
struct SubjectClients {
    /// The number of its last success.
    last: u64,
    clients: Vec<KnownClient>,
}

#[derive(Debug)]
struct KnownClient {
    item: u64,
    until: Timestamp,
}

impl KnownClientTable {
    /// Remembers the clients of at most `most` subjects.
    pub(super) fn new(most: usize) -> Self {
        Self { most, subjects: Mutex::default() }
    }

    pub(super) fn is_known(&self, of: KnownClientKey, now: Timestamp) -> bool {
        let subjects = self.subjects.lock();
        let clients = subjects.clients.get(&of.subject).map(|subject| subject.clients.as_slice());
        clients.unwrap_or_default().iter().any(|client| client.item == of.client && now < client.until)
    }

    /// Makes the client the latest known client of the subject, which keeps `most` of them. Returns whether it was a known one
    /// before.
    pub(super) fn remember(&self, of: KnownClientKey, most: NonZeroU32, until: Timestamp, now: Timestamp) -> bool {
        if self.most == 0 {
            return false;
        }
        let mut subjects = self.subjects.lock();
        subjects.successes += 1;
        let last = subjects.successes;
        let subject =
            subjects.clients.entry(of.subject).or_insert_with(|| SubjectClients { last, clients: Vec::new() });
        subject.last = last;
        let was_known = subject.clients.iter().any(|client| client.item == of.client && now < client.until);
        subject.clients.retain(|client| client.item != of.client && now < client.until);
        subject.clients.insert(0, KnownClient { item: of.client, until });
        subject.clients.truncate(most.get() as usize);
        subjects.order.push_back((last, of.subject));
        subjects.make_room(self.most, now);
        was_known
    }

    pub(super) fn mark(&self) -> KnownClientsMark {
        let subjects = self.subjects.lock();
        KnownClientsMark { successes: subjects.successes, clears: subjects.clears }
    }

    /// Some of the subjects whose last success is after `since` and not after `until`, in the order of these successes,
    /// and after which success the others are; `None`: there are no others. A subject that is remembered anew between
    /// two calls is among the later ones.
    pub(super) fn some_between(&self, since: u64, until: u64, now: Timestamp) -> (Vec<KnownClients>, Option<u64>) {
        let subjects = self.subjects.lock();
        let first = subjects.order.partition_point(|(success, _)| *success <= since);
        let (mut some, mut last) = (Vec::new(), None);
        for (success, key) in subjects.order.range(first..).take(AT_A_TIME).take_while(|(success, _)| *success <= until)
        {
            last = Some(*success);
            let lasting = subjects.clients.get(key).filter(|subject| subject.last == *success);
            let lasting = lasting.map(|subject| subject.lasting(now)).filter(|clients| !clients.is_empty());
            some.extend(lasting.map(|clients| (*key, clients)));
        }
        (some, last)
    }

    /// Removes all known clients.
    pub(super) fn clear(&self) {
        let mut subjects = self.subjects.lock();
        subjects.clients.clear();
        subjects.order.clear();
        subjects.clears += 1;
    }

    /// Restores the clients of a subject, as the latest subject so far.
    pub(super) fn restore(&self, (subject, clients): KnownClients, now: Timestamp) {
        if self.most == 0 {
            return;
        }
        let mut subjects = self.subjects.lock();
        subjects.successes += 1;
        let last = subjects.successes;
        let clients = clients.into_iter().map(|(item, until)| KnownClient { item, until }).collect();
        subjects.clients.insert(subject, SubjectClients { last, clients });
        subjects.order.push_back((last, subject));
        subjects.make_room(self.most, now);
    }
}

impl SubjectClients {
    fn lasting(&self, now: Timestamp) -> Vec<(u64, Timestamp)> {
        let clients = self.clients.iter().filter(|client| now < client.until);
        clients.map(|client| (client.item, client.until)).collect()
    }
}

impl Subjects {
    /// Removes the oldest subjects: those beyond the bound, and those whose clients are all expired.
    fn make_room(&mut self, most: usize, now: Timestamp) {
        while let Some((success, key)) = self.order.front() {
            let is_last = self.clients.get(key).is_some_and(|subject| subject.last == *success);
            if is_last {
                let is_over = self.clients[key].clients.iter().all(|client| client.until <= now);
                if !is_over && self.clients.len() <= most {
                    break;
                }
                self.clients.remove(key);
            }
            self.order.pop_front();
        }
        // A subject with many successes has many entries in the order.
        if self.order.len() > 2 * self.clients.len() + ORDER_SLACK {
            let clients = &self.clients;
            self.order.retain(|(success, key)| clients.get(key).is_some_and(|subject| subject.last == *success));
        }
    }
}

/// So many entries the order may have beyond two for each subject before those of no use are removed.
const ORDER_SLACK: usize = 64;

/// How many successes are looked at before requests may look at the table again.
const AT_A_TIME: usize = 512;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::EPOCH + Duration::from_secs(seconds)
    }

    fn of(subject: u128, client: u64) -> KnownClientKey {
        KnownClientKey { subject: KeyHash(subject), client }
    }

    #[test]
    fn the_subject_with_the_oldest_success_makes_way() {
        let known = KnownClientTable::new(3);
        let five = NonZeroU32::new(5).expect("five");
        for subject in [1, 2, 3, 1, 4] {
            known.remember(of(subject, 9), five, at(100), at(0));
        }
        let left: Vec<u128> = (1..=4).filter(|subject| known.is_known(of(*subject, 9), at(1))).collect();
        assert_eq!(left, [1, 3, 4]);
    }

    #[test]
    fn expired_clients_take_no_room() {
        let known = KnownClientTable::new(1000);
        for second in 0..10_000 {
            let subject = of(u128::from(second), second);
            for _ in 0..3 {
                known.remember(subject, NonZeroU32::MIN, at(second + 10), at(second));
            }
            assert!(known.is_known(subject, at(second + 9)) && !known.is_known(subject, at(second + 10)));
        }
        let subjects = known.subjects.lock();
        assert!(subjects.clients.len() <= 11 && subjects.order.len() <= 100, "{}", subjects.order.len());
    }

    #[test]
    fn a_store_of_no_keys_knows_no_client() {
        let known = KnownClientTable::new(0);
        known.remember(of(1, 1), NonZeroU32::MIN, at(10), at(0));
        assert!(!known.is_known(of(1, 1), at(1)));
    }
}
