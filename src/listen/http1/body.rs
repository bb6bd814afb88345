//! The body of a request, read off the connection by the task that polls it.

use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use bytes::Bytes;
use http_body::Frame;
use parking_lot::Mutex;

use super::shared_channel::SharedChannel;
use crate::http1::grammar::BodyLength;
use crate::listen::IncomingBodyError;

/// The rest of a body. Dropped before its end, it makes the connection close after the response.
#[derive(Debug)]
pub(in crate::listen) struct Http1RequestBody {
    channel: Arc<Mutex<SharedChannel>>,
    length: BodyLength,
    is_complete: bool,
}

impl Http1RequestBody {
    pub(super) fn new(channel: Arc<Mutex<SharedChannel>>, length: BodyLength) -> Self {
        Self { channel, length, is_complete: false }
    }

    pub(in crate::listen) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, IncomingBodyError>>> {
        if self.is_complete {
            return Poll::Ready(None);
        }
        let frame = ready!(self.channel.lock().poll_body(cx));
        match &frame {
            None => self.is_complete = true,
            Some(Ok(frame)) => match (frame.data_ref(), &mut self.length) {
                (None, _) => self.is_complete = true,
                (Some(data), BodyLength::Known(left)) => {
                    *left = left.saturating_sub(data.len() as u64);
                    self.is_complete = *left == 0;
                }
                (Some(_), BodyLength::Chunked | BodyLength::UntilClose) => {}
            },
            Some(Err(_)) => {}
        }
        Poll::Ready(frame)
    }

    pub(in crate::listen) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// How many bytes are left, where that is known.
    pub(in crate::listen) fn remaining(&self) -> Option<u64> {
        match (self.length, self.is_complete) {
            (_, true) => Some(0),
            (BodyLength::Known(left), false) => Some(left),
            (BodyLength::Chunked | BodyLength::UntilClose, false) => None,
        }
    }
}

impl Drop for Http1RequestBody {
    fn drop(&mut self) {
        if !self.is_complete {
            self.channel.lock().abandon_body();
        }
    }
}
