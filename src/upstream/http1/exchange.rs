//! One request, and the head of its answer.

use std::future::poll_fn;
use std::io;
use std::mem;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::task::ready;
use std::time::Duration;

use bytes::Buf;
use bytes::BufMut;
use bytes::Bytes;
use bytes::BytesMut;
use http::Request;
use http::Response;
use http::StatusCode;
use http_body::Body;
use tokio_util::io::poll_read_buf;
use tokio_util::task::AbortOnDropHandle;

use super::Http1ResponseBody;
use super::Link;
use super::Sending;
use super::head;
use super::head::Head;
use super::head::Nonsense;
use super::sending::Unsent;
use crate::http1::Scan;
use crate::upstream::HeadBounds;
use crate::upstream::error::AttemptError;
use crate::upstream::error::BoxError;
use crate::upstream::error::FailureCause;
use crate::upstream::informational::MAX_INFORMATIONAL;
use crate::upstream::informational::OnInformational;
use crate::upstream::response::ResponseBody;

/// How far the head of an answer came.
struct Reading {
    bounds: HeadBounds,
    scan: Scan,
    /// A byte of an answer has arrived.
    has_begun: bool,
    /// Informational answers so far.
    informational: u32,
}

impl Link {
    /// Sends a request, and waits for the head of its answer, `patience` long from when the server is due. What of it
    /// is not sent by then is sent beside the answer.
    ///
    /// `sending` is how far it came over other connections, as long as nothing of it was written.
    pub(in crate::upstream) async fn exchange<B>(
        mut self: Box<Self>,
        request: &mut Request<B>,
        sending: &mut Option<Sending>,
        patience: Duration,
        bounds: HeadBounds,
        on_informational: OnInformational<'_>,
    ) -> Result<Response<ResponseBody>, AttemptError>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Default + Send + Unpin + 'static,
    {
        if let Some(unwritten) = sending {
            unwritten.begins();
        }
        let under_way = sending.get_or_insert_with(|| Sending::new(request));
        let mut reading = Reading { bounds, scan: Scan::default(), has_begun: false, informational: 0 };
        let (mut may_send, mut takes_more) = (true, true);
        let Head { response, length, goes_on } = poll_fn(|cx| {
            if may_send && let Poll::Ready(sent) = under_way.poll(request.body_mut(), Pin::new(&mut self.stream), cx) {
                may_send = false;
                match sent {
                    Ok(()) => {}
                    // It may have said why.
                    Err(Unsent::Connection) => takes_more = false,
                    Err(Unsent::Body(error)) => {
                        return Poll::Ready(Err(AttemptError::Failed(FailureCause::RequestBody(error))));
                    }
                }
            }
            if let Poll::Ready(answer) = self.poll_head(&mut reading, request, on_informational, cx) {
                return Poll::Ready(answer.map_err(|fault| fault.blame(&reading, under_way)));
            }
            match under_way.server_is_due_since() {
                Some(since) => self
                    .patience
                    .poll_at(since + patience, cx)
                    .map(|()| Err(AttemptError::Failed(FailureCause::ResponseTimeout))),
                None => Poll::Pending,
            }
        })
        .await?;
        let incoming = match sending.take().filter(|it| !it.is_through() && takes_more) {
            None => Http1ResponseBody::new(self, length, goes_on && takes_more),
            Some(rest) => {
                let (link, writer) = self.lend_writer();
                let upload = rest.finish(mem::take(request.body_mut()), writer, patience);
                Http1ResponseBody::beside(AbortOnDropHandle::new(tokio::spawn(upload)), Box::new(link), length)
            }
        };
        Ok(response.map(|()| ResponseBody::Http1(incoming)))
    }

    fn poll_head<B>(
        &mut self,
        reading: &mut Reading,
        request: &mut Request<B>,
        on_informational: OnInformational<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Head, Fault>> {
        loop {
            if let Some(head) = self.take_head(reading, request)? {
                let status = head.response.status();
                if !status.is_informational() || status == StatusCode::SWITCHING_PROTOCOLS {
                    return Poll::Ready(Ok(head));
                }
                reading.informational += 1;
                if reading.informational > MAX_INFORMATIONAL {
                    return Poll::Ready(Err(Nonsense::NoEnd.into()));
                }
                on_informational(head.response);
                continue;
            }
            if !head::may_begin(&self.inbox) {
                return Poll::Ready(Err(Nonsense::StatusLine.into()));
            }
            if self.inbox.len() > reading.bounds.bytes {
                return Poll::Ready(Err(Nonsense::TooLong.into()));
            }
            self.inbox.reserve(PART_OF_HEAD);
            // Behind a long head no more of the body is read than behind a short one.
            let mut room = (&mut self.inbox).limit(LONG);
            if ready!(poll_read_buf(Pin::new(&mut self.stream), cx, &mut room))? == 0 {
                let ended = io::Error::new(io::ErrorKind::UnexpectedEof, "it ended before the answer did");
                return Poll::Ready(Err(ended.into()));
            }
            reading.has_begun = true;
        }
    }

    /// The next head, if it is whole.
    fn take_head<B>(&mut self, reading: &mut Reading, request: &mut Request<B>) -> Result<Option<Head>, Nonsense> {
        let Reading { bounds, scan, .. } = reading;
        // The usual case: it came in one piece.
        if scan.is_fresh()
            && !self.inbox.is_empty()
            && let Some(head) = self.take_head_within(self.inbox.len().min(USUAL), request, bounds.fields)?
        {
            return Ok(Some(head));
        }
        let Some(end) = scan.end(&self.inbox) else { return Ok(None) };
        if end > bounds.bytes {
            return Err(Nonsense::TooLong);
        }
        *scan = Scan::default();
        self.take_head_within(end, request, bounds.fields)?.map(Some).ok_or(Nonsense::Head)
    }

    /// What it is read from is a copy, so that the inbox stays in one hand and can be used again.
    fn take_head_within<B>(
        &mut self,
        length: usize,
        request: &mut Request<B>,
        most_fields: usize,
    ) -> Result<Option<Head>, Nonsense> {
        let came = Bytes::copy_from_slice(&self.inbox[..length]);
        let Some((head, end)) = head::read(&came, request, most_fields)? else { return Ok(None) };
        self.inbox.advance(end);
        if end > LONG {
            // Its room is not held while the body comes.
            self.inbox = BytesMut::from(&self.inbox[..]);
        }
        Ok(Some(head))
    }
}

/// Why no head came.
enum Fault {
    Connection(io::Error),
    Nonsense(Nonsense),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Connection(error)
    }
}

impl From<Nonsense> for Fault {
    fn from(nonsense: Nonsense) -> Self {
        Self::Nonsense(nonsense)
    }
}

impl Fault {
    fn blame(self, reading: &Reading, sending: &Sending) -> AttemptError {
        match self {
            Self::Nonsense(nonsense) => AttemptError::Failed(FailureCause::InvalidResponse(nonsense.into())),
            Self::Connection(error) if reading.has_begun => AttemptError::Failed(FailureCause::Closed(error.into())),
            Self::Connection(error) if sending.is_written() => AttemptError::Disconnected(error.into()),
            Self::Connection(error) => AttemptError::Unwritten(error.into()),
        }
    }
}

/// Most heads are shorter. Of a longer one the end is found first.
const USUAL: usize = 2 * 1024;

/// Few are as long as this.
const LONG: usize = 8 * 1024;

/// What is read of it at once: most answers fit with their bodies.
const PART_OF_HEAD: usize = 4 * 1024;
