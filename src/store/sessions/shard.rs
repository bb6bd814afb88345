//! One shard of the sessions: a dense table, an index of its places, and the order of last uses.

use hashbrown::HashTable;

use crate::rules::key::KeyHash;
use crate::store::sessions::codec::Tenths;
use crate::store::sessions::table::ChangedSessions;
use crate::store::slab::{Slab, process_hasher};

/// The sessions of one shard, at most `bound` of them.
#[derive(Debug)]
pub(super) struct SessionShard {
    entries: Slab<SessionEntry>,
    /// Places in `entries`, by the local hash of the session.
    index: HashTable<u32>,
    bound: usize,
    /// The ends of the order of last uses.
    newest: u32,
    oldest: u32,
    pub(super) changed: ChangedSessions,
}

/// One session, in 52 bytes.
#[derive(Clone, Debug)]
struct SessionEntry {
    /// The halves of two hashes in words: a `u128` would waste 12 bytes on alignment.
    session: [u32; 4],
    account: [u32; 4],
    used: Tenths,
    /// The last use that was told on.
    told: Tenths,
    /// How long it is remembered after its last use, in tenths of a second, and the bits of [`Flag`].
    keep: u32,
    /// The neighbours in the order of last uses.
    newer: u32,
    older: u32,
}

/// What this process knows of a session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Session {
    pub(super) account: KeyHash,
    /// In tenths of a second.
    pub(super) keep: u32,
    pub(super) used: Tenths,
}

/// A session that is used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Use {
    pub(super) account: KeyHash,
    /// This use is to be told on.
    pub(super) is_due: bool,
}

/// Bits of `keep`.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(super) enum Flag {
    /// Redis does not have it as it is.
    Unsent = 1 << 31,
    /// Redis has shown it since the table began to be loaded.
    Loaded = 1 << 30,
}

/// Three years.
pub(super) const LONGEST_KEEP: u32 = (1 << 30) - 1;

/// No place.
const NONE: u32 = u32::MAX;

/// How far a session that was used earlier than others is moved down in the order: those above are of this moment.
const MOST_STEPS: usize = 64;

/// A use is told on if this part of the time for which the session is remembered has passed since the last one.
const TOLD_PARTS: u32 = 16;

/// A use is told on at most once a second and at least, if there is one, once a minute. In tenths of a second.
const SHORTEST_SILENCE: u32 = 10;

const LONGEST_SILENCE: u32 = 600;

/// The hash under which the tables of this process have a session. No client can choose sessions that collide.
pub(super) fn local_hash(session: KeyHash) -> u128 {
    process_hasher().rehash(session).0
}

/// The half of a local hash that the index uses.
#[expect(clippy::cast_possible_truncation, reason = "a half is what is wanted")]
fn index_hash(local: u128) -> u64 {
    local as u64
}

impl SessionShard {
    pub(super) fn new(bound: usize) -> Self {
        // Places are kept in 32 bits, and the largest is `NONE`.
        let bound = bound.min(NONE as usize - 1);
        let changed = ChangedSessions::default();
        Self { entries: Slab::new(), index: HashTable::new(), bound, newest: NONE, oldest: NONE, changed }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn clear(&mut self) {
        let mut changed = std::mem::take(&mut self.changed);
        changed.note_all();
        *self = Self { changed, ..Self::new(self.bound) };
    }

    /// Whose the session is. This is a use of it.
    pub(super) fn touch(&mut self, session: KeyHash, local: u128, now: Tenths) -> Option<Use> {
        let place = self.find(session, local)?;
        let entry = &mut self.entries[place as usize];
        if entry.is_over(now) {
            self.remove_at(place, local);
            return None;
        }
        let is_later = now > entry.used;
        let is_another_second = is_later && now.is_another_second(entry.used);
        let silence = (entry.keep() / TOLD_PARTS).clamp(SHORTEST_SILENCE, LONGEST_SILENCE);
        let is_due = now.since(entry.told) >= silence;
        if is_later {
            entry.used = now;
        }
        if is_due {
            entry.told = now;
        }
        let account = key_of(entry.account);
        if is_due {
            self.changed.note(session, self.entries.len());
        }
        if is_another_second && self.newest != place {
            self.unlink(place);
            self.link(place);
        }
        Some(Use { account, is_due })
    }

    /// What is known of a session. This is not a use of it.
    pub(super) fn peek(&self, session: KeyHash, local: u128, now: Tenths) -> Option<Session> {
        let place = self.find(session, local)?;
        let entry = &self.entries[place as usize];
        (!entry.is_over(now)).then(|| entry.session())
    }

    /// Learns a session, or something new of it. If there is no room, the one whose last use is the longest ago makes
    /// way, which may be this one. `flags` makes the flags of those that it had.
    pub(super) fn insert(&mut self, session: KeyHash, local: u128, new: Session, flags: impl FnOnce(u32) -> u32) {
        let keep = new.keep.min(LONGEST_KEEP);
        self.changed.note(session, self.entries.len());
        if let Some(place) = self.find(session, local) {
            let entry = &mut self.entries[place as usize];
            let used = new.used.max(entry.used);
            let moves = used.is_another_second(entry.used);
            (entry.account, entry.used, entry.told) = (words_of(new.account), used, new.used.max(entry.told));
            entry.keep = keep | entry.keep & !LONGEST_KEEP;
            entry.change_flags(flags);
            if moves {
                self.unlink(place);
                self.link(place);
            }
            return;
        }
        while self.entries.len() >= self.bound {
            if self.bound == 0 || self.entries[self.oldest as usize].used > new.used {
                return;
            }
            self.remove_oldest();
        }
        let place = u32::try_from(self.entries.len()).expect("the bound is in 32 bits");
        let (session, account, used) = (words_of(session), words_of(new.account), new.used);
        let mut entry = SessionEntry { session, account, used, told: used, keep, newer: NONE, older: NONE };
        entry.change_flags(flags);
        self.entries.push(entry);
        let entries = &self.entries;
        self.index.insert_unique(index_hash(local), place, |place| entries[*place as usize].index_hash());
        self.link(place);
    }

    /// Forgets a session. `false`: it was not known.
    pub(super) fn remove(&mut self, session: KeyHash, local: u128) -> bool {
        let place = self.find(session, local);
        self.changed.note(session, self.entries.len());
        place.map(|place| self.remove_at(place, local)).is_some()
    }

    /// Forgets every session whose time is over.
    pub(super) fn remove_expired(&mut self, now: Tenths) {
        self.remove_if(|entry| entry.is_over(now));
    }

    /// Forgets every session whose flags `stays` returns `false` for.
    pub(super) fn retain(&mut self, stays: impl Fn(u32) -> bool) {
        self.remove_if(|entry| !stays(entry.keep & !LONGEST_KEEP));
    }

    fn remove_if(&mut self, goes: impl Fn(&SessionEntry) -> bool) {
        let mut place = 0;
        while let Some(entry) = self.entries.get(place as usize) {
            if goes(entry) {
                self.remove_at(place, local_hash(key_of(entry.session)));
            } else {
                place += 1;
            }
        }
    }

    /// Notes a use on another gateway.
    pub(super) fn use_elsewhere(&mut self, session: KeyHash, local: u128, used: Tenths) {
        let Some(place) = self.find(session, local) else { return };
        let entry = &mut self.entries[place as usize];
        entry.told = entry.told.max(used);
        if used > entry.used {
            entry.used = used;
            self.unlink(place);
            self.link(place);
        }
    }

    /// The flags and the last use of a session; none if it is not known.
    pub(super) fn flags(&self, session: KeyHash, local: u128) -> (u32, Tenths) {
        let entry = self.find(session, local).map(|place| &self.entries[place as usize]);
        entry.map_or_else(Default::default, |entry| (entry.keep & !LONGEST_KEEP, entry.used))
    }

    /// Changes the flags of a session, if it is known; `change` also gets its account.
    pub(super) fn change_flags(&mut self, session: KeyHash, local: u128, change: impl FnOnce(KeyHash, u32) -> u32) {
        if let Some(place) = self.find(session, local) {
            let entry = &mut self.entries[place as usize];
            let account = key_of(entry.account);
            entry.change_flags(|flags| change(account, flags));
        }
    }

    /// Changes the flags of all sessions.
    pub(super) fn change_all_flags(&mut self, change: impl Fn(u32) -> u32) {
        for place in 0..self.entries.len() {
            self.entries[place].change_flags(&change);
        }
    }

    /// The sessions that are not over, the one whose last use is the longest ago first, with their flags.
    pub(super) fn oldest_first(&self, now: Tenths) -> impl Iterator<Item = (KeyHash, Session, u32)> {
        let mut place = self.oldest;
        let each = std::iter::from_fn(move || {
            let entry = self.entries.get(place as usize)?;
            place = entry.newer;
            Some(entry)
        });
        let lasting = each.filter(move |entry| !entry.is_over(now));
        lasting.map(|entry| (key_of(entry.session), entry.session(), entry.keep & !LONGEST_KEEP))
    }

    fn find(&self, session: KeyHash, local: u128) -> Option<u32> {
        let session = words_of(session);
        let place = self.index.find(index_hash(local), |place| self.entries[*place as usize].session == session);
        place.copied()
    }

    fn remove_oldest(&mut self) {
        let place = self.oldest;
        let session = key_of(self.entries[place as usize].session);
        self.changed.note(session, self.entries.len());
        self.remove_at(place, local_hash(session));
    }

    fn remove_at(&mut self, place: u32, local: u128) {
        self.unlink(place);
        if let Ok(found) = self.index.find_entry(index_hash(local), |other| *other == place) {
            found.remove();
        }
        let last = u32::try_from(self.entries.len() - 1).expect("the bound is in 32 bits");
        if place != last {
            let moved = self.entries[last as usize].index_hash();
            if let Some(found) = self.index.find_mut(moved, |other| *other == last) {
                *found = place;
            }
        }
        self.entries.swap_remove(place as usize);
        if let Some(SessionEntry { newer, older, .. }) = self.entries.get(place as usize) {
            let (newer, older) = (*newer, *older);
            self.join(older, place);
            self.join(place, newer);
        }
    }

    /// Takes a session out of the order.
    fn unlink(&mut self, place: u32) {
        let SessionEntry { newer, older, .. } = self.entries[place as usize];
        self.join(older, newer);
    }

    /// Puts a session into the order.
    fn link(&mut self, place: u32) {
        let used = self.entries[place as usize].used;
        let (mut newer, mut older) = (NONE, self.newest);
        let is_oldest = self.entries.get(self.oldest as usize).is_some_and(|oldest| used <= oldest.used);
        if is_oldest && older != NONE {
            (newer, older) = (self.oldest, NONE);
        } else {
            for _ in 0..MOST_STEPS {
                match self.entries.get(older as usize) {
                    Some(entry) if entry.used > used => (newer, older) = (older, entry.older),
                    _ => break,
                }
            }
        }
        self.join(older, place);
        self.join(place, newer);
    }

    /// Makes two places neighbours in the order; [`NONE`] is beyond its end.
    fn join(&mut self, older: u32, newer: u32) {
        match older {
            NONE => self.oldest = newer,
            place => self.entries[place as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            place => self.entries[place as usize].older = older,
        }
    }
}

impl SessionEntry {
    fn keep(&self) -> u32 {
        self.keep & LONGEST_KEEP
    }

    fn is_over(&self, now: Tenths) -> bool {
        now.since(self.used) >= self.keep()
    }

    fn session(&self) -> Session {
        Session { account: key_of(self.account), keep: self.keep(), used: self.used }
    }

    fn change_flags(&mut self, change: impl FnOnce(u32) -> u32) {
        self.keep = self.keep() | change(self.keep & !LONGEST_KEEP) & !LONGEST_KEEP;
    }

    fn index_hash(&self) -> u64 {
        index_hash(local_hash(key_of(self.session)))
    }
}

fn words_of(key: KeyHash) -> [u32; 4] {
    let bytes = key.0.to_le_bytes();
    let (words, _) = bytes.as_chunks::<4>();
    [words[0], words[1], words[2], words[3]].map(u32::from_le_bytes)
}

fn key_of(words: [u32; 4]) -> KeyHash {
    let [a, b, c, d] = words.map(u128::from);
    KeyHash(a | b << 32 | c << 64 | d << 96)
}
