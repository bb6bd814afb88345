//! What is sent ahead of an answer.

use std::mem;
use std::sync::Arc;
use std::task::Context;
use std::task::Waker;

use http::Response;
use parking_lot::Mutex;

/// The way of informational answers from whoever has one to the stream's task.
#[derive(Clone, Debug, Default)]
pub(in crate::listen) struct Ahead(Arc<Mutex<Queue>>);

#[derive(Debug, Default)]
struct Queue {
    answers: Vec<Response<()>>,
    stream: Option<Waker>,
}

impl Ahead {
    pub(in crate::listen) fn send(&self, answer: Response<()>) {
        let mut queue = self.0.lock();
        if queue.answers.len() < MOST {
            queue.answers.push(answer);
        }
        if let Some(stream) = queue.stream.take() {
            stream.wake();
        }
    }

    /// What there is by now. The task learns of more.
    pub(super) fn take(&self, cx: &Context<'_>) -> Vec<Response<()>> {
        let mut queue = self.0.lock();
        if !queue.stream.as_ref().is_some_and(|stream| stream.will_wake(cx.waker())) {
            queue.stream = Some(cx.waker().clone());
        }
        mem::take(&mut queue.answers)
    }
}

/// At a time.
const MOST: usize = 16;
