//! The questions of gateways that this one has heard.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::question::Question;

/// Questions from the channel, its own too. Those that nobody answers in time are forgotten.
#[derive(Debug, Default)]
pub struct HeardQuestions {
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

/// What one write of this gateway answers.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct QuestionsToAnswer {
    pub(super) numbers: Vec<u64>,
    /// Requests whose stories somebody wants.
    pub ids: Vec<Box<str>>,
}

impl HeardQuestions {
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
    pub(super) fn last(&self) -> Option<(u64, Instant)> {
        self.heard.lock().last
    }

    pub(super) fn take(&self) -> QuestionsToAnswer {
        std::mem::take(&mut self.heard.lock().waiting)
    }

    /// Waits until there is something to write at once.
    pub(super) async fn heard(&self) {
        self.news.notified().await;
    }

    /// Makes [`HeardQuestions::heard`] return.
    pub(super) fn wake(&self) {
        self.news.notify_one();
    }
}

impl QuestionsToAnswer {
    pub(super) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }
}

/// A gateway answers far more often than so many questions arrive.
const MOST_WAITING: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_wait_for_one_answer_together_and_are_bounded() {
        let questions = HeardQuestions::default();
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
}
