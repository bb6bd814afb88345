//! The body of a request: whoever asks for its next part reads it off the connection.

use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use bytes::Bytes;
use http_body::Frame;
use parking_lot::Mutex;

use super::wire::Wire;
use crate::http1::Length;
use crate::listen::IncomingBodyError;

/// What of a body was not given out yet. Dropped before its end, it ends the connection behind the answer.
#[derive(Debug)]
pub(in crate::listen) struct Body {
    wire: Arc<Mutex<Wire>>,
    length: Length,
    is_through: bool,
}

impl Body {
    pub(super) fn new(wire: Arc<Mutex<Wire>>, length: Length) -> Self {
        Self { wire, length, is_through: false }
    }

    pub(in crate::listen) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, IncomingBodyError>>> {
        if self.is_through {
            return Poll::Ready(None);
        }
        let frame = ready!(self.wire.lock().poll_body(cx));
        match &frame {
            None => self.is_through = true,
            Some(Ok(frame)) => match (frame.data_ref(), &mut self.length) {
                (None, _) => self.is_through = true,
                (Some(data), Length::Known(left)) => {
                    *left = left.saturating_sub(data.len() as u64);
                    self.is_through = *left == 0;
                }
                (Some(_), Length::Chunked | Length::ToTheEnd) => {}
            },
            Some(Err(_)) => {}
        }
        Poll::Ready(frame)
    }

    pub(in crate::listen) fn is_through(&self) -> bool {
        self.is_through
    }

    /// What is left of it, where that is known.
    pub(in crate::listen) fn left(&self) -> Option<u64> {
        match (self.length, self.is_through) {
            (_, true) => Some(0),
            (Length::Known(left), false) => Some(left),
            (Length::Chunked | Length::ToTheEnd, false) => None,
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if !self.is_through {
            self.wire.lock().give_up_body();
        }
    }
}
