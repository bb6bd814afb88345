//! One request, and the head of its answer.

use std::error::Error;
use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::pin::pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::Method;
use http::Request;
use http::Response;
use http::Uri;
use http::header::CONNECTION;
use http::header::HOST;
use http::uri::Authority;
use http::uri::Scheme;
use http_body::Body;
use http_body::Frame;
use http_body::SizeHint;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http2::SendRequest;

use super::Place;
use super::upload::Progress;
use super::upload::Upload;
use crate::alarm::Alarm;
use crate::upstream::Again;
use crate::upstream::again::Lent;
use crate::upstream::error::BoxError;
use crate::upstream::error::Cause;
use crate::upstream::error::Failed;
use crate::upstream::server::Server;

/// The way of one request over a connection with others.
#[derive(Debug)]
pub(in crate::upstream) struct Stream<B> {
    sender: SendRequest<Upload<B>>,
    place: Place,
    patience: Alarm,
    is_https: bool,
    fallback: Arc<str>,
}

impl<B> Stream<B> {
    pub(super) fn new(sender: SendRequest<Upload<B>>, place: Place, server: &Server) -> Self {
        let (is_https, fallback) = (server.secure.is_some(), Arc::clone(server.name()));
        Self { sender, place, patience: Alarm::default(), is_https, fallback }
    }
}

impl<B> Stream<B>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Again + Default + Send + Unpin + 'static,
{
    /// Sends a request, and waits for the head of its answer, `patience` long from when the server is due.
    ///
    /// After a failure the request is what it was as far as [`Failed`] says so, but for its body where the connection
    /// died.
    pub(in crate::upstream) async fn exchange(
        mut self,
        request: &mut Request<B>,
        patience: Duration,
    ) -> Result<Response<Incoming>, Failed> {
        let spare = Spare::of(request);
        let is_upload = !request.body().is_end_stream();
        let progress = Arc::new(Progress::new(is_upload));
        let (outgoing, lent) = self.prepare(mem::take(request), is_upload, &progress);
        let mut handed = pin!(self.sender.try_send_request(outgoing));
        let answered = poll_fn(|cx| {
            if let Poll::Ready(answer) = handed.as_mut().poll(cx) {
                return Poll::Ready(Ok(answer));
            }
            match progress.server_is_due_since() {
                Some(since) => self.patience.poll_at(since + patience, cx).map(|()| Err(Cause::ResponseTimeout)),
                None => Poll::Pending,
            }
        });
        match answered.await.map_err(Failed::Fault)? {
            Ok(response) => {
                if let Some(lent) = lent {
                    lent.give_up();
                }
                Ok(response.map(|body| Incoming { body, patience: self.patience, _place: self.place }))
            }
            Err(failed) => {
                let (failed, body) = blame(failed, lent, &progress);
                if !matches!(failed, Failed::Fault(_)) {
                    // Its connection may be at its end.
                    self.place.retire();
                }
                *request = spare.with(body.unwrap_or_default());
                Err(failed)
            }
        }
    }

    /// Makes a request one of HTTP/2. Its body is lent, as long as it may be refused.
    fn prepare(
        &self,
        request: Request<B>,
        is_upload: bool,
        progress: &Arc<Progress>,
    ) -> (Request<Upload<B>>, Option<Lent<B>>) {
        let mut lent = None;
        let mut request = request.map(|body| {
            if !is_upload {
                return Upload::empty(body);
            }
            let lent = lent.insert(Lent::new(body));
            Upload::lent(lent.share(), Arc::clone(progress))
        });
        self.address(&mut request);
        (request, lent)
    }

    /// Host becomes the authority; what holds for one connection of HTTP/1.1 goes.
    fn address<T>(&self, request: &mut Request<T>) {
        let host = request.headers_mut().remove(HOST);
        request.headers_mut().remove(CONNECTION);
        let host = host.and_then(|host| Authority::try_from(host.as_bytes()).ok());
        let mut target = mem::take(request.uri_mut()).into_parts();
        target.authority = host.or_else(|| self.fallback.parse().ok());
        target.scheme = Some(if self.is_https { Scheme::HTTPS } else { Scheme::HTTP });
        *request.uri_mut() = Uri::from_parts(target).unwrap_or_default();
    }
}

/// The head of a request that may be needed a second time.
struct Spare {
    method: Method,
    target: Uri,
    headers: HeaderMap,
}

impl Spare {
    fn of<B>(request: &Request<B>) -> Self {
        Self { method: request.method().clone(), target: request.uri().clone(), headers: request.headers().clone() }
    }

    fn with<B>(self, body: B) -> Request<B> {
        let mut request = Request::new(body);
        *request.method_mut() = self.method;
        *request.uri_mut() = self.target;
        *request.headers_mut() = self.headers;
        request
    }
}

/// What went wrong, and the request's body where it is what it was.
fn blame<B: Again + Default>(
    mut failed: TrySendError<Request<Upload<B>>>,
    lent: Option<Lent<B>>,
    progress: &Progress,
) -> (Failed, Option<B>) {
    let unwritten = failed.take_message().and_then(|request| request.into_body().into_body());
    let error = failed.into_error();
    if unwritten.is_some() {
        return (Failed::Unwritten(error.into()), unwritten);
    }
    if progress.broke_off() {
        return (Failed::Fault(Cause::RequestBody(error.into())), None);
    }
    let fault = error.source().and_then(|source| source.downcast_ref::<h2::Error>());
    let is_refusal = fault.is_some_and(|fault| {
        // A GOAWAY reaches only requests above the last one that the server looked at.
        fault.is_remote() && (fault.is_go_away() || fault.reason() == Some(h2::Reason::REFUSED_STREAM))
    });
    match fault {
        _ if is_refusal => {
            let body = lent.map_or_else(|| Some(B::default()), Lent::take_back);
            (Failed::Refused { error: error.into(), is_whole: body.is_some() }, body)
        }
        Some(fault) if fault.is_remote() => (Failed::Fault(Cause::Closed(error.into())), None),
        Some(fault) if fault.is_library() => (Failed::Fault(Cause::Nonsense(error.into())), None),
        Some(_) | None => (Failed::Died(error.into()), None),
    }
}

/// The body of an answer.
#[derive(Debug)]
pub(in crate::upstream) struct Incoming {
    body: hyper::body::Incoming,
    patience: Alarm,
    /// As long as the request is under way.
    _place: Place,
}

impl Incoming {
    /// The next part. After the last one nobody has to ask again: [`Self::is_through`] tells.
    pub(in crate::upstream) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.body).poll_frame(cx).map_err(Into::into)
    }

    pub(in crate::upstream) fn is_through(&self) -> bool {
        self.body.is_end_stream()
    }

    pub(in crate::upstream) fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }

    pub(in crate::upstream) fn patience(&mut self) -> &mut Alarm {
        &mut self.patience
    }
}
