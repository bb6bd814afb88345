//! What a gateway says of itself with every write: when it wrote, and which questions that answers.

use std::collections::VecDeque;
use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;

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

/// A gateway that writes nothing else writes its presence this often.
pub(super) const SIGN_OF_LIFE_EVERY: Duration = Duration::from_secs(60);

/// A gateway whose presence is older has missed two of them.
const SIGN_OF_LIFE_LATE: Duration = Duration::from_secs(150);

/// A gateway that answers no question for so long has gone.
const GONE_AFTER: Duration = Duration::from_secs(10);

/// More than all gateways of a fleet ask while an answer is awaited.
const MOST_ANSWERED: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

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
