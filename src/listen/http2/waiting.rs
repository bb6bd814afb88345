//! Heads between two who see each one half of a connection: what reads its bytes, and what is told of its streams.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use h2::Reason;
use parking_lot::Mutex;

use super::head::Head;

/// The heads of streams that were not opened yet. The lock is for the compiler: both sides are one task.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting(Arc<Mutex<Queue>>);

#[derive(Debug, Default)]
struct Queue {
    /// In the order of their streams.
    heads: VecDeque<(u32, Head)>,
    /// Streams up to this one have been opened or refused, once nobody asks for one that is open.
    seen: u32,
    /// Why the connection has to end, and whether it was told.
    fault: Option<(Reason, bool)>,
}

impl Waiting {
    pub(super) fn push(&self, stream: u32, head: Head) {
        self.0.lock().heads.push_back((stream, head));
    }

    /// The head of a stream that was opened. Those before it never will be.
    pub(super) fn take(&self, stream: u32) -> Option<Head> {
        let mut queue = self.0.lock();
        while let Some((of, head)) = queue.pop_up_to(stream) {
            if of == stream {
                return Some(head);
            }
        }
        None
    }

    /// Whether some should be taken first.
    pub(super) fn is_full(&self) -> bool {
        self.0.lock().heads.len() >= MOST
    }

    /// Whoever opens streams has read all that it was given.
    pub(super) fn are_seen(&self) {
        let mut queue = self.0.lock();
        queue.seen = queue.heads.back().map_or(0, |(stream, _)| *stream);
    }

    /// No stream is open that was not asked for: what was seen and not taken was refused.
    pub(super) fn settle(&self) {
        let mut queue = self.0.lock();
        let seen = queue.seen;
        while queue.pop_up_to(seen).is_some() {}
    }

    /// The connection has to end.
    pub(super) fn fail(&self, reason: Reason) {
        self.0.lock().fault.get_or_insert((reason, false));
    }

    pub(super) fn has_failed(&self) -> bool {
        self.0.lock().fault.is_some()
    }

    /// Why the connection has to end, once.
    pub(super) fn take_fault(&self) -> Option<Reason> {
        let mut queue = self.0.lock();
        let (reason, is_told) = queue.fault.as_mut()?;
        (!mem::replace(is_told, true)).then_some(*reason)
    }
}

impl Queue {
    fn pop_up_to(&mut self, stream: u32) -> Option<(u32, Head)> {
        let is_up_to = self.heads.front().is_some_and(|(of, _)| *of <= stream);
        if is_up_to { self.heads.pop_front() } else { None }
    }
}

/// They take memory. Few clients open as many streams at once.
const MOST: usize = 32;
