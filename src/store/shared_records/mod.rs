//! What the gateways on one Redis know of each other.
//!
//! Each gateway has one hash in Redis, and every few seconds writes the fields of it that have changed, in one command. A
//! gateway at rest writes nothing, but for a sign of life once a minute. So others know for an hour what a gateway has
//! counted until a few seconds before it died. A set names the gateways.
//!
//! A gateway that is asked what all of them know publishes a [`Question`](super::redis::Question) on the channel on which gateways hear of bans and
//! resets. Every gateway that hears it writes at once what has changed, and notes in its [`Presence`] which question that
//! answers. The gateway that asked reads until all have answered, 300 ms at most; [`SilentGateways`] knows which have not.
//! Where a gateway may not publish, it reads what was written within the last seconds.
//!
//! - this file: the one type that the rest of the crate uses, and what a gateway says of itself.
//! - [`writing`], [`asking`]: its two sides.
//!
//! Nothing of it is in a request's way: tasks of the process write and read over a connection of their own, and a failure
//! opens no breaker. In a cluster all records are in one slot. They are encrypted under the key ring that all gateways
//! share, so a reader of Redis learns no address and no name from them. When another key begins, or Redis may have lost
//! what was there, a gateway writes all of it again.

mod asking;
mod writing;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio::time::Instant;

pub use self::asking::GatewayRecords;
use crate::store::any_store::AnyStore;
use crate::store::key_ring::{LiveKeyRing, random_bytes};
pub use crate::store::redis::{MAX_ID, QuestionsToAnswer, ReceivedQuestions};
use crate::store::redis::{RecordLink, RecordsUnavailable};
use crate::store::shared_records::writing::{ServerClock, WrittenFields};
use crate::words::clock::{Clock, Timestamp};

const PURPOSE: &str = "records of gateways";

/// Writes the records of this gateway and reads those of all.
///
/// ```ignore
/// let records = SharedRecords::of(&store, gateway_id).expect("the store is in Redis");
/// let questions = records.questions_to_answer();
/// records.write(vec![Field { name: "status".into(), content }], &questions).await?;
/// for GatewayRecords { gateway, standing, contents, .. } in records.ask(&["status".into()], None).await? { .. }
/// ```
#[derive(Debug)]
pub struct SharedRecords {
    pub(super) link: RecordLink,
    key_ring: Arc<LiveKeyRing>,
    pub(super) gateway: Arc<str>,
    written: Mutex<WrittenFields>,
    pub(super) is_over: AtomicBool,
    /// The last question that this gateway has asked, and when. Whoever asks next holds the lock.
    pub(super) last_question: Mutex<Option<(u64, Instant)>>,
    pub(super) silent: SilentGateways,
    clock: ServerClock,
}

impl SharedRecords {
    /// `None`: the store is in this process, so there are no other gateways. `gateway` is the id of this one.
    pub fn of(store: &AnyStore, gateway: Arc<str>) -> Option<Self> {
        let AnyStore::Shared(shared) = store else { return None };
        Some(Self {
            link: RecordLink::new(shared.shared()),
            key_ring: Arc::clone(shared.key_ring()),
            gateway,
            written: Mutex::default(),
            is_over: AtomicBool::new(false),
            last_question: Mutex::default(),
            silent: SilentGateways::default(),
            clock: ServerClock::new(Clock::system()),
        })
    }

    pub(super) fn questions(&self) -> &ReceivedQuestions {
        self.link.questions()
    }

    /// The time of Redis.
    pub(super) async fn now(&self) -> Result<Timestamp, RecordsUnavailable> {
        match self.clock.now() {
            Some(now) => Ok(now),
            None => self.ask_for_time().await,
        }
    }

    pub(super) async fn ask_for_time(&self) -> Result<Timestamp, RecordsUnavailable> {
        let now = self.link.time().await?;
        self.clock.set(now);
        Ok(now)
    }

    /// Names the key that encrypts now.
    pub(super) fn key(&self) -> [u8; 16] {
        self.key_ring.load().display_secret()
    }

    pub(super) fn seal(&self, field: &str, content: &[u8]) -> Vec<u8> {
        self.key_ring.load().seal(PURPOSE, place(&self.gateway, field).as_bytes(), &random_bytes(), content)
    }

    /// `None`: it cannot be opened.
    pub(super) fn open(&self, gateway: &str, field: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        self.key_ring.load().open(PURPOSE, place(gateway, field).as_bytes(), sealed)
    }
}

/// What a content is bound to: it cannot be passed off as another one.
fn place(gateway: &str, field: &str) -> String {
    format!("{gateway}/{field}")
}

// What a gateway says of itself with every write: when it wrote, and which questions that answers.

/// A gateway that writes nothing else writes its presence this often.
pub(super) const SIGN_OF_LIFE_EVERY: Duration = Duration::from_secs(60);

/// So does one that hears no questions, before the others take it for gone.
pub(super) const UNASKED_SIGN_OF_LIFE_EVERY: Duration = Duration::from_secs(3);

/// A gateway whose presence is older has missed two of them.
const SIGN_OF_LIFE_LATE: Duration = Duration::from_secs(150);

/// A gateway that answers no question for so long has gone.
const GONE_AFTER: Duration = Duration::from_secs(10);

/// More than all gateways of a fleet ask while an answer is awaited.
const MOST_ANSWERED: usize = 64;

/// The sign of life of a gateway.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Presence {
    /// When it was written, by the clock of Redis.
    pub(super) written: Timestamp,
    /// It hears questions and answers them. Otherwise it writes every few seconds that it is there.
    pub(super) listens: bool,
    /// It has ended in order and writes no more.
    pub(super) is_over: bool,
    /// The numbers of the last questions that it has answered.
    pub(super) answered: VecDeque<u64>,
}

/// How a gateway stands to a question.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Standing {
    /// It is up: what it has written is what it knows.
    Up,
    /// It did not answer in time.
    Missing,
    /// It was not heard of for 10 s, though it was asked: it crashed, or does not reach Redis.
    Gone,
    /// It has finished its last requests and is no more.
    Ended,
}

impl Presence {
    /// Notes that these questions are answered.
    pub(super) fn answer(&mut self, numbers: &[u64]) {
        self.answered.extend(numbers);
        let surplus = self.answered.len().saturating_sub(MOST_ANSWERED);
        self.answered.drain(..surplus);
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("numbers can be written")
    }

    /// `None`: another version has written it.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }

    /// How the gateway stands now. `question` is what it was asked; `None`: it was asked nothing. `silent_for`: for how
    /// long it has answered no question.
    pub(super) fn standing(&self, now: Timestamp, question: Option<u64>, silent_for: Duration) -> Standing {
        let age = now.since(self.written);
        if self.is_over {
            return Standing::Ended;
        }
        match question.filter(|_| self.listens) {
            Some(question) if self.answered.contains(&question) => Standing::Up,
            Some(_) if silent_for < GONE_AFTER && age < SIGN_OF_LIFE_LATE => Standing::Missing,
            None if age < if self.listens { SIGN_OF_LIFE_LATE } else { GONE_AFTER } => Standing::Up,
            Some(_) | None => Standing::Gone,
        }
    }
}

// What gateways write.

/// The longest content, in bytes.
pub const MAX_FIELD: usize = 1 << 20;

/// A part of what a gateway lets the others know.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Field {
    pub name: String,
    pub content: Vec<u8>,
}

// Which gateways do not answer questions, and since when.

/// The gateways that have answered no question since a moment, by the clock of Redis.
#[derive(Debug, Default)]
pub(super) struct SilentGateways(parking_lot::Mutex<HashMap<String, Timestamp>>);

impl SilentGateways {
    /// For how long a gateway has answered no question. What it wrote since ends its silence.
    pub(super) fn silent_for(&self, gateway: &str, presence: &Presence, now: Timestamp) -> Duration {
        let mut silent = self.0.lock();
        match silent.get(gateway) {
            Some(since) if *since >= presence.written => now.since(*since),
            Some(_) => {
                silent.remove(gateway);
                Duration::ZERO
            }
            None => Duration::ZERO,
        }
    }

    /// Notes which gateways have not answered a question that was asked at that moment. Others are not silent.
    pub(super) fn note<'g>(&self, unanswered: impl IntoIterator<Item = &'g str>, asked: Timestamp) {
        let mut silent = self.0.lock();
        let before = std::mem::take(&mut *silent);
        silent.extend(unanswered.into_iter().map(|gateway| {
            let since = before.get(gateway).copied().unwrap_or(asked);
            (gateway.to_owned(), since)
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn silence_begins_with_the_first_question_and_ends_with_a_write() {
        let silent = SilentGateways::default();
        let wrote = |seconds| Presence { written: at(seconds), ..Presence::default() };
        let silent_for = |presence: &Presence, now| silent.silent_for("one", presence, at(now)).as_secs();
        assert_eq!(silent_for(&wrote(90), 100), 0);
        silent.note(["one", "two"], at(100));
        silent.note(["one"], at(105));
        assert_eq!(silent_for(&wrote(90), 108), 8);
        assert_eq!(silent.silent_for("two", &wrote(90), at(108)), Duration::ZERO);
        assert_eq!(silent_for(&wrote(107), 108), 0);
        silent.note(["one"], at(110));
        assert_eq!(silent_for(&wrote(107), 112), 2);
        silent.note([], at(113));
        assert_eq!(silent_for(&wrote(107), 114), 0);
    }

    const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

    fn presence(seconds_ago: u64) -> Presence {
        let written = Timestamp::from_micros(NOW.as_micros() - seconds_ago * 1_000_000);
        Presence { written, listens: true, is_over: false, answered: VecDeque::from([7]) }
    }

    #[track_caller]
    fn check(presence: &Presence, question: Option<u64>, silent_for: u64, expected: Standing) {
        assert_eq!(presence.standing(NOW, question, Duration::from_secs(silent_for)), expected);
    }

    #[test]
    fn a_gateway_is_up_while_it_answers_missing_at_first_and_gone_later() {
        check(&presence(0), Some(7), 0, Standing::Up);
        // Its clock may be wrong: an answer counts for more.
        check(&presence(9999), Some(7), 99, Standing::Up);
        check(&presence(0), Some(8), 0, Standing::Missing);
        check(&presence(70), Some(8), 9, Standing::Missing);
        check(&presence(70), Some(8), 10, Standing::Gone);
        check(&presence(150), Some(8), 0, Standing::Gone);
        check(&Presence { is_over: true, ..presence(0) }, Some(8), 0, Standing::Ended);
    }

    #[test]
    fn one_that_hears_no_question_is_up_while_it_writes() {
        let deaf = |seconds| Presence { listens: false, ..presence(seconds) };
        check(&deaf(9), Some(8), 99, Standing::Up);
        check(&deaf(10), Some(8), 0, Standing::Gone);
        check(&presence(149), None, 0, Standing::Up);
        check(&presence(150), None, 0, Standing::Gone);
        check(&deaf(10), None, 0, Standing::Gone);
    }

    #[test]
    fn it_is_read_as_it_was_written_and_bounded() {
        let mut presence = presence(0);
        presence.answer(&(0..200).collect::<Vec<_>>());
        assert_eq!((presence.answered.len(), presence.answered.back()), (MOST_ANSWERED, Some(&199)));
        assert_eq!(Presence::from_bytes(&presence.to_bytes()), Some(presence));
        assert_eq!(Presence::from_bytes(b"x"), None);
    }
}
