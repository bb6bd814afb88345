//! How the table of bans follows the bans in Redis.

use std::collections::{BTreeSet, HashSet};

use tokio::sync::{RwLockReadGuard, RwLockWriteGuard};

use super::ban::{Ban, BanId, BanRecord};
use super::table::Bans;

impl Bans {
    /// Applies a change from a message. Messages arrive in the order of the changes; a change that is known already is
    /// not applied again. Requests a sync where a change is missing.
    pub(in crate::store) fn receive_change(&self, version: BanVersion, change: &BanChange) {
        let lifted = match change {
            BanChange::Lift(id) => self.find(*id),
            BanChange::Ban(_) => None,
        };
        let mut state = self.sync_state.lock();
        if !self.apply(&mut state, version, change) {
            return;
        }
        if !state.receive(version) {
            self.request_sync();
        }
        drop(state);
        self.tell_observer(change, lifted.as_ref());
    }

    fn tell_observer(&self, change: &BanChange, lifted: Option<&Ban>) {
        let Some(observer) = self.observer() else { return };
        match (change, lifted) {
            (BanChange::Ban(record), _) => observer.ban_announced(&record.ban),
            (BanChange::Lift(_), Some(ban)) => observer.lift_announced(ban),
            (BanChange::Lift(_), None) => {}
        }
    }

    /// Applies an answer of Redis: this ban holds, or is lifted, at that version. The messages about changes that other
    /// gateways made before it may still be on their way. `is_change`: this answer tells of that very change.
    pub(in crate::store) fn receive_answer(&self, version: BanVersion, change: &BanChange, is_change: bool) {
        let mut state = self.sync_state.lock();
        let is_new = self.apply(&mut state, version, change);
        if let BanChange::Ban(record) = change
            && !is_new
        {
            // The message was faster than the answer, and does not say what this gateway knows of the key.
            self.describe(&record.ban);
        }
        if is_new && is_change && state.is_next(version) {
            state.version = Some(version);
            state.advance();
        }
    }

    /// Applies an answer of Redis: it had no such ban at that version. A message may have brought a later ban since then.
    pub(in crate::store) fn receive_absence(&self, version: Option<BanVersion>, id: BanId) {
        let mut state = self.sync_state.lock();
        let knows_later =
            state.version.zip(version).is_some_and(|(known, version)| known != version && known.follows(version));
        if self.is_unsent(id) || !knows_later {
            self.lift(id);
            state.changed_during_load.iter_mut().for_each(|changed| _ = changed.insert(id));
        }
    }

    /// `false`: this change, or a later one, was known.
    fn apply(&self, state: &mut BanSyncState, version: BanVersion, change: &BanChange) -> bool {
        if state.version.is_some_and(|known| known.follows(version)) {
            return false;
        }
        let id = match change {
            BanChange::Ban(record) => {
                self.insert(BanRecord::clone(record));
                record.ban.id
            }
            BanChange::Lift(id) => {
                self.lift(*id);
                *id
            }
        };
        state.changed_during_load.iter_mut().for_each(|changed| _ = changed.insert(id));
        true
    }

    pub(in crate::store) fn version(&self) -> Option<BanVersion> {
        self.sync_state.lock().version
    }

    /// Every change up to this version is known.
    pub(in crate::store) fn set_version(&self, version: Option<BanVersion>) {
        let mut state = self.sync_state.lock();
        state.version = version;
        state.advance();
    }

    /// Begins to load all bans from Redis. Returns the mark for [`Bans::end_load`].
    pub(in crate::store) fn begin_load(&self) -> u64 {
        self.sync_state.lock().changed_during_load = Some(HashSet::new());
        self.mark()
    }

    /// Takes in one of the loaded bans. A ban that this process has set and not sent yet stays if it ends later.
    pub(in crate::store) fn load(&self, record: BanRecord) {
        let state = self.sync_state.lock();
        let is_stale = state.changed_during_load.as_ref().is_some_and(|changed| changed.contains(&record.ban.id));
        let ends_later = |known: Ban| self.is_unsent(known.id) && known.until > record.ban.until;
        if !is_stale && !self.find(record.ban.id).is_some_and(ends_later) {
            self.insert(record);
        }
    }

    /// All bans were loaded: removes those that were not among them.
    pub(in crate::store) fn end_load(&self, mark: u64) {
        self.sync_state.lock().changed_during_load = None;
        self.remove_unchanged_since(mark);
    }

    /// Notes whether this process receives changes from now on. It has missed those made while it was not subscribed.
    pub(in crate::store) fn set_subscribed(&self, is_subscribed: bool) {
        self.sync_state.lock().is_subscribed = is_subscribed;
        self.request_sync();
    }

    pub(in crate::store) fn is_subscribed(&self) -> bool {
        self.sync_state.lock().is_subscribed
    }

    /// Held while a ban is sent to Redis again. Otherwise a lift that Redis has decided before, and this process takes in
    /// after that, would leave the ban in Redis.
    pub(in crate::store) async fn resend(&self) -> RwLockWriteGuard<'_, ()> {
        self.resending.write().await
    }

    /// Held while a ban is lifted in Redis and here.
    pub(in crate::store) async fn pause_resends(&self) -> RwLockReadGuard<'_, ()> {
        self.resending.read().await
    }

    /// Wakes the task that waits in [`Bans::sync_requested`]: it asks Redis for changes and sends it unsent bans.
    pub(in crate::store) fn request_sync(&self) {
        self.sync_request.notify_one();
    }

    /// Waits until a sync is requested.
    pub(in crate::store) async fn sync_requested(&self) {
        self.sync_request.notified().await;
    }
}

// The version of the bans that this process knows.

/// How many changes are remembered beyond a missing one.
const MOST_AHEAD: usize = 10_000;

/// The changes of the bans in Redis that this process knows.
#[derive(Debug, Default)]
pub(super) struct BanSyncState {
    /// Every change up to this one is known.
    pub(super) version: Option<BanVersion>,
    /// Later changes that are known, while a change before them is missing.
    pub(super) ahead: BTreeSet<BanVersion>,
    /// Which bans changed while all bans are being loaded: a page that was read before such a change is stale.
    pub(super) changed_during_load: Option<HashSet<BanId>>,
    /// Whether this process receives changes as they are made.
    pub(super) is_subscribed: bool,
}

impl BanSyncState {
    /// Whether no change is missing before this one.
    pub(super) fn is_next(&self, version: BanVersion) -> bool {
        self.version.map_or(version.changes == 1, |known| known.next() == version)
    }

    /// Remembers a change that was received. `false`: a change before it is missing.
    pub(super) fn receive(&mut self, version: BanVersion) -> bool {
        self.ahead.insert(version);
        if self.ahead.len() > MOST_AHEAD {
            self.ahead.pop_first();
        }
        if self.version.is_none() && self.is_next(version) {
            self.version = Some(version);
        }
        self.advance();
        self.ahead.is_empty()
    }

    /// Moves the known version on over the changes that were received ahead of it.
    pub(super) fn advance(&mut self) {
        let Some(mut known) = self.version else { return self.ahead.clear() };
        self.ahead.retain(|ahead| !known.follows(*ahead));
        while self.ahead.remove(&known.next()) {
            known = known.next();
        }
        self.version = Some(known);
    }
}

// Versions of the bans in Redis, and changes between them.

/// Which changes of the bans in Redis are known: a random number drawn when the hash was created, and how many changes
/// there were since then.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(in crate::store) struct BanVersion {
    pub(super) begun: u64,
    pub(super) changes: u64,
}

/// One change of the bans in Redis.
#[derive(Clone, Debug)]
pub(in crate::store) enum BanChange {
    Ban(Box<BanRecord>),
    Lift(BanId),
}

impl From<BanRecord> for BanChange {
    fn from(record: BanRecord) -> Self {
        Self::Ban(Box::new(record))
    }
}

impl BanVersion {
    /// Reads two words; `None`: there are no bans.
    pub(in crate::store) fn read(words: &[String]) -> Option<Self> {
        let [begun, changes, ..] = words else { return None };
        Some(Self { begun: u64::from_str_radix(begun, 16).ok()?, changes: changes.parse().ok()? })
    }

    /// Whether this version is `before` or a later one of the same hash, so that Redis has lost nothing between the
    /// two.
    pub(in crate::store) fn follows(self, before: Self) -> bool {
        self.begun == before.begun && self.changes >= before.changes
    }

    /// The version after one more change.
    pub(super) fn next(self) -> Self {
        Self { changes: self.changes.wrapping_add(1), ..self }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::rules::key::{DisplayKey, KeyHash};
    use crate::store::bans::BanSubject;
    use crate::store::bans::codec::read_stored;
    use crate::words::clock::{Clock, ManualClock, Timestamp};
    use crate::words::signing::{KeyRing, KeySeed};

    fn version(changes: u64) -> BanVersion {
        BanVersion { begun: 1, changes }
    }

    fn bans() -> Bans {
        Bans::new(Clock::Manual(ManualClock::at(Timestamp::from_micros(1_000_000_000))))
    }

    fn ban(bans: &Bans, key: u128, seconds: u64) -> BanRecord {
        let (now, length) = (bans.now(), Duration::from_secs(seconds));
        let subject =
            BanSubject::Key { key: KeyHash(key), limit: "login".into(), named: DisplayKey::default(), client: None };
        let ban =
            Ban { id: subject.id(), subject, since: now, until: now + length, reason: "".into(), by_operator: false };
        BanRecord::new(ban, 1, length)
    }

    fn left(bans: &Bans, key: u128) -> Option<u64> {
        bans.left(KeyHash(key)).map(|left| left.as_secs())
    }

    /// Whether a sync is requested.
    fn is_due(bans: &Bans) -> bool {
        futures_util::FutureExt::now_or_never(bans.sync_requested()).is_some()
    }

    #[test]
    fn an_old_change_is_ignored_and_a_missed_one_requests_a_sync() {
        let bans = bans();
        let record = ban(&bans, 7, 5);
        let lift = BanChange::Lift(record.ban.id);
        bans.set_version(Some(version(6)));
        bans.receive_change(version(5), &record.clone().into());
        assert_eq!((left(&bans, 7), bans.version()), (None, Some(version(6))));
        bans.receive_change(version(7), &record.into());
        assert_eq!((left(&bans, 7), bans.version()), (Some(5), Some(version(7))));
        assert!(!is_due(&bans));
        bans.receive_change(version(9), &lift);
        assert_eq!((left(&bans, 7), bans.version()), (None, Some(version(7))), "one was missed");
        assert!(is_due(&bans));
        bans.set_version(Some(version(8)));
        assert_eq!(bans.version(), Some(version(9)), "that one was received before");
    }

    #[test]
    fn an_answer_overtakes_no_message() {
        let bans = bans();
        let record = ban(&bans, 7, 5);
        bans.receive_change(version(1), &ban(&bans, 8, 9).into());
        assert_eq!(bans.version(), Some(version(1)), "nothing comes before the first");
        // Another gateway lifts the ban; that message arrives after the answer to a later change.
        bans.receive_answer(version(3), &record.clone().into(), true);
        assert_eq!((left(&bans, 7), bans.version()), (Some(5), Some(version(1))));
        bans.receive_change(version(2), &BanChange::Lift(record.ban.id));
        bans.receive_change(version(3), &record.clone().into());
        assert_eq!((left(&bans, 7), bans.version()), (Some(5), Some(version(3))));
        bans.receive_answer(version(4), &ban(&bans, 9, 5).into(), true);
        assert_eq!(bans.version(), Some(version(4)));
        bans.receive_answer(version(5), &record.clone().into(), false);
        assert_eq!(bans.version(), Some(version(4)), "the change itself was not received");
        assert!(!is_due(&bans));
    }

    #[test]
    fn an_answer_to_a_lift_ends_no_later_ban() {
        let bans = bans();
        let record = ban(&bans, 7, 5);
        let id = record.ban.id;
        let lift = BanChange::Lift(id);
        bans.set_version(Some(version(1)));
        bans.receive_change(version(2), &record.clone().into());
        bans.receive_answer(version(3), &lift, true);
        assert_eq!((left(&bans, 7), bans.version()), (None, Some(version(3))));
        bans.receive_change(version(3), &lift);
        // Another gateway bans again. That message overtakes the answers to two lifts.
        bans.receive_change(version(4), &lift);
        bans.receive_change(version(5), &record.clone().into());
        bans.receive_answer(version(4), &lift, true);
        bans.receive_absence(Some(version(4)), id);
        assert_eq!((left(&bans, 7), bans.version()), (Some(5), Some(version(5))));
        // A ban that never reached Redis is lifted, whatever else has changed there.
        bans.mark_unsent_until(bans.mark());
        bans.receive_absence(Some(version(4)), id);
        assert_eq!(left(&bans, 7), None);
        bans.receive_change(version(6), &record.into());
        bans.receive_absence(None, id);
        assert_eq!(left(&bans, 7), None, "Redis has lost all bans");
    }

    #[test]
    fn a_new_hash_of_bans_requests_a_sync() {
        let bans = bans();
        bans.set_version(Some(version(6)));
        bans.receive_change(BanVersion { begun: 2, changes: 1 }, &ban(&bans, 7, 5).into());
        assert_eq!((left(&bans, 7), bans.version()), (Some(5), Some(version(6))));
        assert!(is_due(&bans));
    }

    #[test]
    fn a_load_undoes_no_change_made_during_it() {
        let bans = bans();
        let record = ban(&bans, 7, 9);
        let id = record.ban.id;
        let key = "0".repeat(31) + "7";
        let text = format!("2000000 1000000 1 1000000 l {{\"key\": \"{key}\", \"reason\": \"\"}}");
        let ring = KeyRing::new(KeySeed { made: Timestamp::EPOCH, secret: [1; 32] });
        let page = || read_stored(id, &text, 1_500_000, bans.now(), &ring).expect("a ban");
        for (change, expected) in [(BanChange::Lift(id), None), (record.into(), Some(9))] {
            let mark = bans.begin_load();
            bans.receive_change(version(2), &change);
            bans.load(page());
            bans.end_load(mark);
            assert_eq!(left(&bans, 7), expected);
        }
        let mark = bans.begin_load();
        bans.load(page());
        bans.end_load(mark);
        assert_eq!(bans.left(KeyHash(7)), Some(Duration::from_millis(500)));
    }
}
