//! Sends interim responses of HTTP/2.

use std::mem;
use std::sync::Arc;
use std::task::Context;
use std::task::Waker;

use parking_lot::Mutex;

use crate::head::ResponseHead;

/// Passes interim responses to the task of the stream.
#[derive(Clone, Debug, Default)]
pub(in crate::listen) struct Http2InterimSender(Arc<Mutex<InterimQueue>>);

#[derive(Debug, Default)]
struct InterimQueue {
    responses: Vec<ResponseHead>,
    stream: Option<Waker>,
}

impl Http2InterimSender {
    pub(in crate::listen) fn send(&self, head: ResponseHead) {
        let mut queue = self.0.lock();
        if queue.responses.len() < MAX_QUEUED {
            queue.responses.push(head);
        }
        if let Some(stream) = queue.stream.take() {
            stream.wake();
        }
    }

    /// The responses so far. The task is woken for further ones.
    pub(super) fn take(&self, cx: &Context<'_>) -> Vec<ResponseHead> {
        let mut queue = self.0.lock();
        if !queue.stream.as_ref().is_some_and(|stream| stream.will_wake(cx.waker())) {
            queue.stream = Some(cx.waker().clone());
        }
        mem::take(&mut queue.responses)
    }
}

/// Responses in the queue; further ones are dropped.
const MAX_QUEUED: usize = 16;
