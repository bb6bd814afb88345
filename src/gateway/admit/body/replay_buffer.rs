//! Keeps the bytes of a body that were sent, up to a bound, so that they can be sent again.

use std::mem;

use bytes::Bytes;
use http_body::Frame;

use crate::coalesce::BodyBuffer;

/// The bytes of a body that were sent since `keep` was called.
#[derive(Debug, Default)]
pub(super) struct ReplayBuffer {
    parts: BodyBuffer,
    /// How many more bytes may be kept; `None` when nothing is kept.
    room: Option<usize>,
}

impl ReplayBuffer {
    /// Starts to keep what is sent. `is_in_memory`: the whole body is in memory already, so all of it is kept. Of
    /// another body only the start is kept.
    pub(super) fn keep(&mut self, is_in_memory: bool) {
        let room = if is_in_memory { usize::MAX } else { MAX_KEPT };
        *self = Self { parts: BodyBuffer::expecting(MAX_KEPT), room: Some(room) };
    }

    pub(super) fn push(&mut self, frame: &Frame<Bytes>) {
        let Some(room) = self.room else { return };
        match frame.data_ref().and_then(|data| Some((data, room.checked_sub(data.len())?))) {
            Some((data, left)) => {
                self.parts.put(data.clone());
                self.room = Some(left);
            }
            // Trailers are not kept, and neither is a body beyond the bound.
            None => self.clear(),
        }
    }

    /// Takes all bytes that were sent; `None` when they were not kept.
    pub(super) fn take(&mut self) -> Option<Bytes> {
        let Self { parts, room } = mem::take(self);
        room.map(|_| parts.into_bytes())
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Longer than most forms.
pub(super) const MAX_KEPT: usize = 16 * 1024;
