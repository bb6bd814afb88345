//! The way of one request over a connection: of its own, or shared with others.

use std::error::Error;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::Response;
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use tokio_util::either::Either;

use super::Again;
use super::error::Cause;
use super::link::Handed;
use super::link::Link;
use super::link::Rest;
use super::trunk::Stream;
use super::wire::Upload;
use super::wire::Wire;
use crate::alarm::Alarm;

#[derive(Debug)]
pub(super) enum Way<B> {
    /// HTTP/1.1.
    Own(Box<Link<B>>),
    /// HTTP/2.
    Shared(Stream<B>),
}

/// Why a request got no answer on a connection.
pub(super) enum Failed<B> {
    /// No byte of it was written.
    Unwritten(Box<Request<B>>, hyper::Error),
    /// The server says that it did nothing with it.
    Refused(hyper::Error),
    /// The connection ended before a byte of an answer.
    Died(hyper::Error),
    Fault(Cause),
}

impl<B> Way<B>
where
    B: Body<Data = Bytes> + Again + Default + Send + Unpin + std::fmt::Debug + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    /// Hands a request over.
    pub(super) fn hand_over(&mut self, request: Request<B>) -> impl Future<Output = Handed<B>> + use<B> {
        match self {
            Self::Own(link) => Either::Left(link.hand_over(request)),
            Self::Shared(stream) => Either::Right(stream.hand_over(request)),
        }
    }

    /// Waits for the head of the answer to what was handed over, `patience` long from when the server is due.
    pub(super) async fn answer(
        &mut self,
        mut handed: Pin<&mut impl Future<Output = Handed<B>>>,
        patience: Duration,
    ) -> Result<Response<Incoming>, Failed<B>> {
        let is_shared = matches!(self, Self::Shared(_));
        let (wire, alarm) = self.parts();
        poll_fn(|cx| {
            if let Poll::Ready(answer) = handed.as_mut().poll(cx) {
                return Poll::Ready(answer.map_err(|failed| wire.blame(failed, is_shared)));
            }
            let deadline = wire.server_is_due_since() + patience;
            alarm.poll_at(deadline, cx).map(|()| Err(Failed::Fault(Cause::ResponseTimeout)))
        })
        .await
    }

    fn parts(&mut self) -> (&Wire, &mut Alarm) {
        match self {
            Self::Own(link) => (&link.wire, &mut link.patience),
            Self::Shared(stream) => (&stream.wire, &mut stream.patience),
        }
    }

    /// The request handed over is answered.
    pub(super) fn is_answered(&mut self) {
        if let Self::Shared(stream) = self {
            stream.is_answered();
        }
    }

    /// The body of the request handed over, which was refused. `None`: it cannot be sent again.
    pub(super) fn take_back(&mut self) -> Option<B> {
        match self {
            Self::Own(_) => None,
            Self::Shared(stream) => stream.take_back(),
        }
    }

    /// No further request is to go this way.
    pub(super) fn retire(&self) {
        if let Self::Shared(stream) = self {
            stream.retire();
        }
    }

    pub(super) fn into_rest(self) -> Box<dyn Rest> {
        match self {
            Self::Own(link) => link,
            Self::Shared(stream) => Box::new(stream),
        }
    }
}

impl Wire {
    fn blame<B: Again>(&self, mut failed: TrySendError<Request<Upload<B>>>, is_shared: bool) -> Failed<B> {
        let unwritten = failed.take_message();
        let error = failed.into_error();
        if let Some(request) = unwritten {
            let (head, body) = request.into_parts();
            if let Some(body) = body.into_body() {
                return Failed::Unwritten(Box::new(Request::from_parts(head, body)), error);
            }
        }
        if is_shared {
            return self.blame_shared(error);
        }
        if error.is_user() {
            Failed::Fault(Cause::RequestBody(error))
        } else if error.is_parse() {
            Failed::Fault(Cause::Nonsense(error))
        } else if self.answered() {
            Failed::Fault(Cause::Closed(error))
        } else {
            Failed::Died(error)
        }
    }

    fn blame_shared<B>(&self, error: hyper::Error) -> Failed<B> {
        if self.broke_off() {
            return Failed::Fault(Cause::RequestBody(error));
        }
        match error.source().and_then(|source| source.downcast_ref::<h2::Error>()) {
            // A GOAWAY reaches only requests above the last one that the server looked at.
            Some(fault) if fault.is_remote() && fault.is_go_away() => Failed::Refused(error),
            Some(fault) if fault.is_remote() && fault.reason() == Some(h2::Reason::REFUSED_STREAM) => {
                Failed::Refused(error)
            }
            Some(fault) if fault.is_remote() => Failed::Fault(Cause::Closed(error)),
            Some(fault) if fault.is_library() => Failed::Fault(Cause::Nonsense(error)),
            Some(_) | None => Failed::Died(error),
        }
    }
}
