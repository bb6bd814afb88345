//! The questions of gateways that this one has heard.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A gateway answers far more often than so many questions arrive.
const MOST_WAITING: usize = 64;

/// Questions from the channel, its own too. Those that nobody answers in time are forgotten.
#[derive(Debug, Default)]
pub struct ReceivedQuestions {
    heard: Mutex<Heard>,
    news: Notify,
    /// Whether this process receives the messages of the channel.
    is_listening: AtomicBool,
}

#[derive(Debug, Default)]
struct Heard {
    waiting: QuestionsToAnswer,
    /// The number of the last question, and when it was heard.
    last: Option<(u64, Instant)>,
}

/// The questions that one write of this gateway answers.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct QuestionsToAnswer {
    pub(in crate::store) numbers: Vec<u64>,
    /// Requests whose stories somebody wants.
    pub ids: Vec<Box<str>>,
}

impl ReceivedQuestions {
    /// Takes a message of the channel. A malformed one is ignored, and so is what is beyond a bound.
    pub(in crate::store) fn receive(&self, message: &[u8]) {
        let Some(Question { number, id }) = Question::read(message) else { return };
        let mut heard = self.heard.lock();
        heard.last = Some((number, Instant::now()));
        if heard.waiting.numbers.len() < MOST_WAITING {
            heard.waiting.numbers.push(number);
            heard.waiting.ids.extend(id);
        }
        drop(heard);
        self.news.notify_one();
    }

    pub(in crate::store) fn set_listening(&self, is_listening: bool) {
        self.is_listening.store(is_listening, Ordering::Release);
    }

    pub(in crate::store) fn is_listening(&self) -> bool {
        self.is_listening.load(Ordering::Acquire)
    }

    /// The last question, and when it was heard.
    pub(in crate::store) fn last(&self) -> Option<(u64, Instant)> {
        self.heard.lock().last
    }

    pub(in crate::store) fn take(&self) -> QuestionsToAnswer {
        std::mem::take(&mut self.heard.lock().waiting)
    }

    /// Waits until there is something to write at once.
    pub(in crate::store) async fn heard(&self) {
        self.news.notified().await;
    }

    /// Makes [`ReceivedQuestions::heard`] return.
    pub(in crate::store) fn wake(&self) {
        self.news.notify_one();
    }
}

impl QuestionsToAnswer {
    pub(in crate::store) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }
}

// A question of one gateway to all.

/// No id of a request is longer, in bytes.
pub const MAX_ID: usize = 64;

const DIGITS: usize = 16;

/// Asks every gateway to write what has changed, and the story of one request if it knows it.
///
/// As a message it is `ask NUMBER` or `ask NUMBER =ID`; the number is 16 hexadecimal digits.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::store) struct Question {
    /// A random number, by which answers are told apart.
    pub(in crate::store) number: u64,
    /// The id of a request.
    pub(in crate::store) id: Option<Box<str>>,
}

impl Question {
    /// `id` is left out where it is none that a gateway gives or takes.
    pub(in crate::store) fn new(id: Option<&str>) -> Self {
        Self { number: fastrand::u64(..), id: id.filter(|id| is_id(id)).map(Into::into) }
    }

    /// Whether a message of the channel is a question, perhaps a malformed one.
    pub(in crate::store) fn is_in(message: &[u8]) -> bool {
        message.starts_with(b"ask ")
    }

    /// `None`: it is malformed.
    pub(in crate::store) fn read(message: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(message).ok()?.strip_prefix("ask ")?;
        let (number, id) = match text.split_once(' ') {
            None => (text, None),
            Some((number, id)) => (number, Some(id.strip_prefix('=').filter(|id| is_id(id))?)),
        };
        let is_digit = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
        let are_digits = number.len() == DIGITS && number.bytes().all(is_digit);
        let number = u64::from_str_radix(number, 16).ok().filter(|_| are_digits)?;
        Some(Self { number, id: id.map(Into::into) })
    }

    pub(in crate::store) fn to_message(&self) -> String {
        let mut message = format!("ask {:0DIGITS$x}", self.number);
        if let Some(id) = &self.id {
            // With the sign it is no key to a gateway of an earlier version, which resets keys that it finds in messages.
            let _ = write!(message, " ={id}");
        }
        message
    }
}

fn is_id(text: &str) -> bool {
    (1..=MAX_ID).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn questions_wait_for_one_answer_together_and_are_bounded() {
        let questions = ReceivedQuestions::default();
        assert!(questions.take().is_empty() && questions.last().is_none());
        questions.receive(b"ask 00000000000000ff =a-request");
        questions.receive(b"ask nonsense");
        questions.receive(b"ask 0000000000000100");
        assert_eq!(questions.last().map(|(number, _)| number), Some(0x100));
        let taken = questions.take();
        assert_eq!((taken.numbers, taken.ids), (vec![0xff, 0x100], vec!["a-request".into()]));
        for number in 0..1000 {
            questions.receive(format!("ask {number:016x} =x").as_bytes());
        }
        let taken = questions.take();
        assert_eq!((taken.numbers.len(), taken.ids.len()), (MOST_WAITING, MOST_WAITING));
        assert!(questions.take().is_empty());
    }

    #[test]
    fn a_question_is_read_as_it_was_asked_and_anything_else_is_ignored() {
        for id in [None, Some("7f3a"), Some(&*"x".repeat(MAX_ID))] {
            let question = Question::new(id);
            assert_eq!(question.id.as_deref(), id);
            assert_eq!(Question::read(question.to_message().as_bytes()), Some(question));
        }
        for id in ["", "a b", "a\n", "é", &"x".repeat(MAX_ID + 1)] {
            assert_eq!(Question::new(Some(id)).id, None, "{id}");
        }
        let number = "00000000000000ff";
        for wrong in [
            "ask ".to_owned(),
            "ask 7".to_owned(),
            "ask +0000000000000ff".to_owned(),
            format!("ask {number} "),
            format!("ask {number} ="),
            format!("ask {number} id"),
            format!("ask {number} =a =b"),
            format!("ask {number} ={}", "x".repeat(MAX_ID + 1)),
            format!("asks {number}"),
        ] {
            assert_eq!(Question::read(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(Question::read(b"ask \xff"), None);
    }

    proptest! {
        #[test]
        fn what_is_read_is_bounded_and_written_the_same(message in "ask [0-9a-f]{14,17}( ?=?[ -~]{0,70})?") {
            if let Some(question) = Question::read(message.as_bytes()) {
                prop_assert!(question.id.as_ref().is_none_or(|id| id.len() <= MAX_ID));
                prop_assert_eq!(question.to_message(), message);
            }
        }
    }
}
