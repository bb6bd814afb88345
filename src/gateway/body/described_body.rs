//! The body of a request that a proxy describes. The proxy sends it in messages, perhaps only when it is asked, or not at all.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use parking_lot::Mutex;

use crate::listen::IncomingBodyError;
use crate::wire::head::KnownName;

/// The body as the rules read it.
#[derive(Debug)]
pub struct DescribedBody(Arc<Mutex<Shared>>);

/// Gives the proxy's parts to the body.
#[derive(Debug)]
pub struct DescribedBodyWriter(Arc<Mutex<Shared>>);

/// How a described body ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DescribedEnd {
    Whole,
    /// The proxy shows only the start of it.
    Cut,
    /// The proxy shows nothing of it. Who reads it nevertheless waits for ever.
    Withheld,
}

#[derive(Debug, Default)]
struct Shared {
    parts: VecDeque<Bytes>,
    end: Option<DescribedEnd>,
    /// Whether a part was asked for that was not there.
    is_wanted: bool,
    is_dropped: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// Whether a request that a proxy describes without a body may have one nevertheless. Only a request that is known to have
/// none is taken for one without: a client must not hide a field from the rules by sending it where the proxy does not look.
/// `has` tells which header fields the request has.
pub fn may_have_body(method: &str, has: impl Fn(KnownName) -> bool) -> bool {
    let has_usually_none = matches!(method, "GET" | "HEAD" | "OPTIONS");
    let announcing = [KnownName::TRANSFER_ENCODING, KnownName::CONTENT_TYPE, KnownName::CONTENT_ENCODING];
    !has_usually_none || announcing.into_iter().any(has)
}

impl DescribedBody {
    /// A body whose parts are still to come.
    pub fn channel() -> (Self, DescribedBodyWriter) {
        let shared = Arc::<Mutex<Shared>>::default();
        (Self(Arc::clone(&shared)), DescribedBodyWriter(shared))
    }

    /// A body that the proxy does not show at all. Its fields are missing, and fields that may override those of the
    /// query are unknown.
    pub fn unseen() -> Self {
        Self(Arc::new(Mutex::new(Shared { end: Some(DescribedEnd::Cut), ..Shared::default() })))
    }

    pub(super) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, IncomingBodyError>>> {
        let mut shared = self.0.lock();
        if let Some(part) = shared.parts.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(part))));
        }
        match shared.end {
            Some(DescribedEnd::Whole | DescribedEnd::Cut) => Poll::Ready(None),
            Some(DescribedEnd::Withheld) | None => {
                shared.is_wanted = true;
                shared.reader = Some(cx.waker().clone());
                if let Some(writer) = shared.writer.take() {
                    writer.wake();
                }
                Poll::Pending
            }
        }
    }

    /// Whether there is nothing to wait for, as far as anybody should read who does not need the body.
    pub(super) fn comes_on_demand(&self) -> bool {
        !matches!(self.0.lock().end, Some(DescribedEnd::Whole | DescribedEnd::Cut))
    }

    pub(super) fn is_end_stream(&self) -> bool {
        let shared = self.0.lock();
        shared.parts.is_empty() && shared.end == Some(DescribedEnd::Whole)
    }

    /// A body that was cut off is longer than the bytes that will come.
    pub(super) fn size_hint(&self) -> SizeHint {
        let shared = self.0.lock();
        let here = shared.parts.iter().map(|part| part.len() as u64).sum();
        match shared.end {
            Some(DescribedEnd::Whole) => SizeHint::with_exact(here),
            Some(DescribedEnd::Cut | DescribedEnd::Withheld) => {
                let mut hint = SizeHint::new();
                hint.set_lower(here + 1);
                hint
            }
            None => SizeHint::new(),
        }
    }
}

impl Drop for DescribedBody {
    fn drop(&mut self) {
        let mut shared = self.0.lock();
        shared.is_dropped = true;
        shared.parts.clear();
    }
}

impl DescribedBodyWriter {
    /// Adds a part. It is not kept when the body is not read any more.
    pub fn push(&self, part: Bytes) {
        let mut shared = self.0.lock();
        if shared.is_dropped || shared.end.is_some() || part.is_empty() {
            return;
        }
        shared.parts.push_back(part);
        shared.wake_reader();
    }

    /// No part follows. A second end changes nothing.
    pub fn end(&self, end: DescribedEnd) {
        let mut shared = self.0.lock();
        shared.end.get_or_insert(end);
        shared.wake_reader();
    }

    /// The bytes that wait to be read.
    pub fn waiting(&self) -> usize {
        self.0.lock().parts.iter().map(Bytes::len).sum()
    }

    /// Whether a part was asked for that was not there.
    #[cfg(test)]
    pub fn is_wanted(&self) -> bool {
        self.0.lock().is_wanted
    }

    /// Waits until a part is asked for that is not there.
    pub async fn wanted(&self) {
        poll_fn(|cx| {
            let mut shared = self.0.lock();
            if shared.is_wanted {
                return Poll::Ready(());
            }
            shared.writer = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

impl Shared {
    fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}
