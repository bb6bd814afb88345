//! What is known of the bans in Redis, and when it is to be asked for them.

use std::collections::BTreeSet;
use std::collections::HashSet;

use super::ban::Ban;
use super::ban::BanId;
use super::ban::Record;
use super::shared::Change;
use super::shared::Version;
use super::table::Bans;

/// What is known of the bans in Redis.
#[derive(Debug, Default)]
pub(super) struct Followed {
    version: Option<Version>,
    /// Changes that were heard of, but not all of those before them.
    ahead: BTreeSet<Version>,
    /// What changed while all were being read: a page that was read before says nothing of it.
    meanwhile: Option<HashSet<BanId>>,
    /// Whether changes are heard of as they are made.
    listens: bool,
}

/// How many changes are remembered beyond one that was missed.
const MOST_AHEAD: usize = 10_000;

impl Bans {
    /// Something was changed in Redis. Messages come in the order of the changes; what is known already is not done
    /// again.
    pub(in crate::store) fn heard(&self, version: Version, change: &Change) {
        let mut followed = self.followed.lock();
        if !self.apply(&mut followed, version, change) {
            return;
        }
        followed.ahead.insert(version);
        if followed.ahead.len() > MOST_AHEAD {
            followed.ahead.pop_first();
        }
        if followed.version.is_none() && followed.is_next(version) {
            followed.version = Some(version);
        }
        followed.catch_up();
        if !followed.ahead.is_empty() {
            self.ask();
        }
    }

    /// Redis answered that this ban holds, at that version. What others did before is told as they did it, and may be
    /// on its way yet.
    pub(in crate::store) fn answered(&self, version: Version, record: &Record, is_change: bool) {
        let mut followed = self.followed.lock();
        let is_news = self.apply(&mut followed, version, &Change::Ban(record.clone().into()));
        if is_news && is_change && followed.is_next(version) {
            followed.version = Some(version);
            followed.catch_up();
        }
    }

    /// `false`: it was known, or overtaken.
    fn apply(&self, followed: &mut Followed, version: Version, change: &Change) -> bool {
        if followed.version.is_some_and(|known| known.follows(version)) {
            return false;
        }
        let id = match change {
            Change::Ban(record) => {
                self.keep(Record::clone(record));
                record.ban.id
            }
            Change::Lift(id) => {
                self.lift(*id);
                *id
            }
        };
        followed.meanwhile.iter_mut().for_each(|meanwhile| _ = meanwhile.insert(id));
        true
    }

    pub(in crate::store) fn version(&self) -> Option<Version> {
        self.followed.lock().version
    }

    /// Everything up to there is known.
    pub(in crate::store) fn is_at(&self, version: Option<Version>) {
        let mut followed = self.followed.lock();
        followed.version = version;
        followed.catch_up();
    }

    /// All of them are about to be read; the answer is for [`Bans::end_load`].
    pub(in crate::store) fn begin_load(&self) -> u64 {
        self.followed.lock().meanwhile = Some(HashSet::new());
        self.mark()
    }

    /// One of them. What this process decided by itself and ends later stays.
    pub(in crate::store) fn loaded(&self, record: Record) {
        let followed = self.followed.lock();
        let is_old = followed.meanwhile.as_ref().is_some_and(|meanwhile| meanwhile.contains(&record.ban.id));
        let ends_later = |known: Ban| self.is_untold(known.id) && known.until > record.ban.until;
        if !is_old && !self.find(record.ban.id).is_some_and(ends_later) {
            self.keep(record);
        }
    }

    /// All were read: what was not among them is no more.
    pub(in crate::store) fn end_load(&self, mark: u64) {
        self.followed.lock().meanwhile = None;
        self.only(mark);
    }

    /// Whether changes are heard of from now on. Those in between were not.
    pub(in crate::store) fn listens(&self, listens: bool) {
        self.followed.lock().listens = listens;
        self.ask();
    }

    pub(in crate::store) fn is_listening(&self) -> bool {
        self.followed.lock().listens
    }

    /// Redis is to be asked what it knows, and told what it does not, by whoever waits for [`Bans::asked`].
    pub(in crate::store) fn ask(&self) {
        self.due.notify_one();
    }

    /// Waits until Redis is to be asked.
    pub(in crate::store) async fn asked(&self) {
        self.due.notified().await;
    }
}

impl Followed {
    /// Nothing comes before the first.
    fn is_next(&self, version: Version) -> bool {
        self.version.map_or(version.changes == 1, |known| known.next() == version)
    }

    /// What was heard of beyond what was known may be all that there is.
    fn catch_up(&mut self) {
        let Some(mut known) = self.version else { return self.ahead.clear() };
        self.ahead.retain(|ahead| !known.follows(*ahead));
        while self.ahead.remove(&known.next()) {
            known = known.next();
        }
        self.version = Some(known);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::Clock;
    use crate::clock::ManualClock;
    use crate::clock::Timestamp;
    use crate::key::DisplayKey;
    use crate::key::KeyHash;
    use crate::store::bans::BanSubject;
    use crate::store::bans::shared::stored;

    fn version(changes: u64) -> Version {
        Version { begun: 1, changes }
    }

    fn bans() -> Bans {
        Bans::new(Clock::Manual(ManualClock::at(Timestamp::from_micros(1_000_000_000))))
    }

    fn ban(bans: &Bans, key: u128, seconds: u64) -> Record {
        let (now, length) = (bans.now(), Duration::from_secs(seconds));
        let subject =
            BanSubject::Key { key: KeyHash(key), limit: "login".into(), named: DisplayKey::default(), client: None };
        let ban =
            Ban { id: subject.id(), subject, since: now, until: now + length, reason: "".into(), by_operator: false };
        Record { ban, step: 1, length }
    }

    fn left(bans: &Bans, key: u128) -> Option<u64> {
        bans.left(KeyHash(key)).map(|left| left.as_secs())
    }

    /// Whether Redis is to be asked.
    fn is_due(bans: &Bans) -> bool {
        futures_util::FutureExt::now_or_never(bans.asked()).is_some()
    }

    #[test]
    fn what_was_overtaken_is_not_believed_and_what_was_missed_is_asked_for() {
        let bans = bans();
        let record = ban(&bans, 7, 5);
        let lift = Change::Lift(record.ban.id);
        bans.is_at(Some(version(6)));
        bans.heard(version(5), &Change::Ban(record.clone().into()));
        assert_eq!((left(&bans, 7), bans.version()), (None, Some(version(6))));
        bans.heard(version(7), &Change::Ban(record.into()));
        assert_eq!((left(&bans, 7), bans.version()), (Some(5), Some(version(7))));
        assert!(!is_due(&bans));
        bans.heard(version(9), &lift);
        assert_eq!((left(&bans, 7), bans.version()), (None, Some(version(7))), "one was missed");
        assert!(is_due(&bans));
        bans.is_at(Some(version(8)));
        assert_eq!(bans.version(), Some(version(9)), "that was heard of");
    }

    #[test]
    fn an_answer_overtakes_no_message() {
        let bans = bans();
        let record = ban(&bans, 7, 5);
        bans.heard(version(1), &Change::Ban(ban(&bans, 8, 9).into()));
        assert_eq!(bans.version(), Some(version(1)), "nothing comes before the first");
        // Another gateway lifts it, which is told later than what came after it is answered.
        bans.answered(version(3), &record, true);
        assert_eq!((left(&bans, 7), bans.version()), (Some(5), Some(version(1))));
        bans.heard(version(2), &Change::Lift(record.ban.id));
        bans.heard(version(3), &Change::Ban(record.clone().into()));
        assert_eq!((left(&bans, 7), bans.version()), (Some(5), Some(version(3))));
        bans.answered(version(4), &ban(&bans, 9, 5), true);
        assert_eq!(bans.version(), Some(version(4)));
        bans.answered(version(5), &record, false);
        assert_eq!(bans.version(), Some(version(4)), "what changed it was not heard of");
        assert!(!is_due(&bans));
    }

    #[test]
    fn bans_that_begin_anew_are_asked_for() {
        let bans = bans();
        bans.is_at(Some(version(6)));
        bans.heard(Version { begun: 2, changes: 1 }, &Change::Ban(ban(&bans, 7, 5).into()));
        assert_eq!((left(&bans, 7), bans.version()), (Some(5), Some(version(6))));
        assert!(is_due(&bans));
    }

    #[test]
    fn reading_all_brings_back_nothing_that_changed_meanwhile() {
        let bans = bans();
        let record = ban(&bans, 7, 9);
        let id = record.ban.id;
        let key = "0".repeat(31) + "7";
        let text = format!("2000000 1000000 1 1000000 l {{\"key\": \"{key}\", \"reason\": \"\"}}");
        let page = || stored(id, &text, 1_500_000, bans.now()).expect("a ban");
        for (change, expected) in [(Change::Lift(id), None), (Change::Ban(record.into()), Some(9))] {
            let mark = bans.begin_load();
            bans.heard(version(2), &change);
            bans.loaded(page());
            bans.end_load(mark);
            assert_eq!(left(&bans, 7), expected);
        }
        let mark = bans.begin_load();
        bans.loaded(page());
        bans.end_load(mark);
        assert_eq!(bans.left(KeyHash(7)), Some(Duration::from_millis(500)));
    }
}
