//! Passes heads from the filter that reads frames to the session that opens streams.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use h2::Reason;
use parking_lot::Mutex;

use super::head::ParsedHead;

/// The heads of streams that h2 has not opened yet. The lock is for the compiler: both sides are in one task.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingHeads(Arc<Mutex<HeadQueue>>);

#[derive(Debug, Default)]
struct HeadQueue {
    /// With their streams, in ascending order.
    heads: VecDeque<(u32, ParsedHead)>,
    /// h2 has read the stubs of the streams up to this one. What it has not opened of them, it has refused.
    seen: u32,
    /// Why the connection must end, and whether the session has taken it.
    fault: Option<(Reason, bool)>,
}

impl PendingHeads {
    pub(super) fn push(&self, stream: u32, head: ParsedHead) {
        self.0.lock().heads.push_back((stream, head));
    }

    /// The head of a stream that h2 opened. h2 never opens the streams before it any more.
    pub(super) fn take(&self, stream: u32) -> Option<ParsedHead> {
        let mut queue = self.0.lock();
        while let Some((of, head)) = queue.pop_up_to(stream) {
            if of == stream {
                return Some(head);
            }
        }
        None
    }

    /// Whether the session should take some before more frames are read.
    pub(super) fn is_full(&self) -> bool {
        self.0.lock().heads.len() >= MAX_PENDING
    }

    /// h2 has read all stubs so far.
    pub(super) fn mark_seen(&self) {
        let mut queue = self.0.lock();
        queue.seen = queue.heads.back().map_or(0, |(stream, _)| *stream);
    }

    /// h2 has no further stream to open: it has refused those that were seen and not taken.
    pub(super) fn drop_refused(&self) {
        let mut queue = self.0.lock();
        let seen = queue.seen;
        while queue.pop_up_to(seen).is_some() {}
    }

    /// The connection must end.
    pub(super) fn fail(&self, reason: Reason) {
        self.0.lock().fault.get_or_insert((reason, false));
    }

    pub(super) fn has_failed(&self) -> bool {
        self.0.lock().fault.is_some()
    }

    /// Why the connection must end; returned once.
    pub(super) fn take_fault(&self) -> Option<Reason> {
        let mut queue = self.0.lock();
        let (reason, is_taken) = queue.fault.as_mut()?;
        (!mem::replace(is_taken, true)).then_some(*reason)
    }
}

impl HeadQueue {
    fn pop_up_to(&mut self, stream: u32) -> Option<(u32, ParsedHead)> {
        let is_up_to = self.heads.front().is_some_and(|(of, _)| *of <= stream);
        if is_up_to { self.heads.pop_front() } else { None }
    }
}

/// Heads take memory. Few clients open as many streams at once.
const MAX_PENDING: usize = 32;
