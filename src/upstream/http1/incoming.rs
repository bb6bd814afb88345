//! The body of an answer.

use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use bytes::Bytes;
use http_body::Frame;
use http_body::SizeHint;
use tokio_util::io::poll_read_buf;
use tokio_util::task::AbortOnDropHandle;

use super::Link;
use crate::http1::Decoder;
use crate::http1::Length;
use crate::timer::LazyTimer;
use crate::upstream::error::BoxError;
use crate::upstream::server::InFlight;
use crate::upstream::tunnel::Tunnel;

/// A body, as it comes in over the connection that its head came over.
#[derive(Debug)]
pub(in crate::upstream) struct Http1ResponseBody {
    link: Box<Link>,
    body: Decoder,
    /// The connection may carry a further request.
    goes_on: bool,
    /// What of the request is still being sent.
    upload: Option<AbortOnDropHandle<()>>,
}

impl Http1ResponseBody {
    /// `goes_on`: the server means to answer further requests.
    pub(super) fn new(link: Box<Link>, length: Length, goes_on: bool) -> Self {
        Self { link, body: Decoder::new(length), goes_on, upload: None }
    }

    /// Comes beside what is left of the request, which is given up when this is dropped before its end.
    pub(super) fn beside(upload: AbortOnDropHandle<()>, link: Box<Link>, length: Length) -> Self {
        Self { link, body: Decoder::new(length), goes_on: false, upload: Some(upload) }
    }

    /// The next part. After the last one nobody has to ask again: [`Self::is_complete`] tells.
    pub(in crate::upstream) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            if let Some(frame) = self.body.decode(&mut self.link.inbox)? {
                return Poll::Ready(Some(Ok(frame)));
            }
            if self.body.is_through() {
                return Poll::Ready(None);
            }
            let link = &mut *self.link;
            let wanted = self.body.left().and_then(|left| usize::try_from(left).ok()).unwrap_or(PART);
            link.inbox.reserve(wanted.min(PART));
            if ready!(poll_read_buf(Pin::new(&mut link.stream), cx, &mut link.inbox))? == 0 {
                self.goes_on = false;
                return Poll::Ready(self.body.end().err().map(|cut_short| Err(cut_short.into())));
            }
        }
    }

    pub(in crate::upstream) fn is_complete(&self) -> bool {
        self.body.is_through()
    }

    pub(in crate::upstream) fn size_hint(&self) -> SizeHint {
        self.body.left().map_or_else(SizeHint::new, SizeHint::with_exact)
    }

    pub(in crate::upstream) fn timer(&mut self) -> &mut LazyTimer {
        &mut self.link.patience
    }

    /// The body is complete. Returns the connection if it can carry a further request.
    pub(in crate::upstream) fn finish(self) -> Option<Box<Link>> {
        if let Some(upload) = self.upload {
            upload.detach();
        }
        if self.goes_on { self.link.rest() } else { None }
    }

    /// The server has switched protocols.
    pub(in crate::upstream) fn into_tunnel(self, in_flight: InFlight) -> Tunnel {
        let Link { stream, inbox, .. } = *self.link;
        Tunnel::new(stream, inbox, in_flight)
    }
}

/// What is read of a body at once: a few such parts are kept for a client that does not take them.
const PART: usize = 16 * 1024;
