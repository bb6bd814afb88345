//! One request, and the head of its answer.

use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use h2::client::ResponseFuture;
use h2::client::SendRequest;
use http::HeaderMap;
use http::HeaderValue;
use http::Method;
use http::Request;
use http::Response;
use http::Uri;
use http::header::CONNECTION;
use http::header::CONTENT_LENGTH;
use http::header::HOST;
use http::uri::Authority;
use http::uri::Scheme;
use http_body::Body;
use http_body::Frame;
use http_body::SizeHint;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::StreamGuard;
use super::upload::Upload;
use crate::http2;
use crate::timer::LazyTimer;
use crate::upstream::ReplayBody;
use crate::upstream::error::AttemptError;
use crate::upstream::error::BoxError;
use crate::upstream::error::FailureCause;
use crate::upstream::send::MAX_INFORMATIONAL;
use crate::upstream::send::OnInformational;
use crate::upstream::server::Server;

/// The way of one request over a connection with others.
#[derive(Debug)]
pub(in crate::upstream) struct Http2Stream {
    sender: SendRequest<Bytes>,
    place: StreamGuard,
    patience: LazyTimer,
    is_https: bool,
    fallback: Arc<str>,
}

impl Http2Stream {
    pub(super) fn new(sender: SendRequest<Bytes>, place: StreamGuard, server: &Server) -> Self {
        let (is_https, fallback) = (server.secure.is_some(), Arc::clone(server.name()));
        Self { sender, place, patience: LazyTimer::default(), is_https, fallback }
    }

    /// Sends a request, and waits for the head of its answer, `patience` long from when the server is due. What of it
    /// is not sent by then is sent beside the answer.
    ///
    /// After a failure the request is what it was as far as [`AttemptError`] says so, but for its body where the connection
    /// died.
    pub(in crate::upstream) async fn exchange<B>(
        mut self,
        request: &mut Request<B>,
        patience: Duration,
        on_informational: OnInformational<'_>,
    ) -> Result<Response<Http2ResponseBody>, AttemptError>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + ReplayBody + Default + Send + Unpin + 'static,
    {
        if let Err(error) = poll_fn(|cx| self.sender.poll_ready(cx)).await {
            self.place.retire();
            return Err(AttemptError::Unwritten(error.into()));
        }
        let is_upload = !request.body().is_end_stream();
        let outgoing = self.outgoing(request);
        let (mut answer, stream) =
            self.sender.send_request(outgoing, !is_upload).map_err(|error| AttemptError::Disconnected(error.into()))?;
        let began = Instant::now();
        let mut upload = is_upload.then(|| Upload::new(mem::take(request.body_mut()), stream));
        let mut informational = 0;
        let answered = poll_fn(|cx| {
            if let Some(upload) = &mut upload
                && let Poll::Ready(Err(error)) = upload.poll(cx)
            {
                return Poll::Ready(Err(AttemptError::Failed(FailureCause::RequestBody(error))));
            }
            if let Poll::Ready(answered) = poll_answer(&mut answer, &mut informational, on_informational, cx) {
                return Poll::Ready(answered.map_err(AttemptError::Failed));
            }
            let due = upload.as_ref().map_or(Some(began), Upload::server_is_due_since);
            match due {
                Some(since) => self
                    .patience
                    .poll_at(since + patience, cx)
                    .map(|()| Err(AttemptError::Failed(FailureCause::ResponseTimeout))),
                None => Poll::Pending,
            }
        });
        match answered.await? {
            Ok(response) => {
                let rest = upload.filter(|upload| !upload.is_through()).map(|mut upload| {
                    upload.forget();
                    AbortOnDropHandle::new(tokio::spawn(async move {
                        // The client sees in its answer what became of it.
                        let _ = poll_fn(|cx| upload.poll(cx)).await;
                    }))
                });
                let length = stated_length(response.headers());
                let Self { place, patience, .. } = self;
                Ok(response.map(|stream| Http2ResponseBody {
                    body: http2::Body::new(stream, length),
                    upload: rest,
                    patience,
                    _place: place,
                }))
            }
            Err(error) => {
                let mut is_whole = true;
                if let Some(upload) = upload {
                    let body = upload.take_back();
                    is_whole = body.is_some();
                    *request.body_mut() = body.unwrap_or_default();
                }
                let failed = blame(error, is_whole);
                if !matches!(failed, AttemptError::Failed(_)) {
                    // Its connection may be at its end.
                    self.place.retire();
                }
                Err(failed)
            }
        }
    }

    /// The head of a request as HTTP/2 has it: Host becomes the authority; what holds for one connection of HTTP/1.1 goes.
    fn outgoing<B: Body>(&self, request: &Request<B>) -> Request<()> {
        let mut head = Request::new(());
        *head.method_mut() = request.method().clone();
        *head.headers_mut() = request.headers().clone();
        let fields = head.headers_mut();
        let host = fields.remove(HOST);
        fields.remove(CONNECTION);
        if let Some(length) = request.body().size_hint().exact()
            && (length > 0 || means_a_body(request.method()))
        {
            fields.entry(CONTENT_LENGTH).or_insert_with(|| HeaderValue::from(length));
        }
        let host = host.and_then(|host| Authority::try_from(host.as_bytes()).ok());
        let mut target = request.uri().clone().into_parts();
        target.authority = host.or_else(|| self.fallback.parse().ok());
        target.scheme = Some(if self.is_https { Scheme::HTTPS } else { Scheme::HTTP });
        *head.uri_mut() = Uri::from_parts(target).unwrap_or_default();
        head
    }
}

/// Ready with the answer, or why there is none; informational ones ahead of it go to `on_informational`.
fn poll_answer(
    answer: &mut ResponseFuture,
    informational: &mut u32,
    on_informational: OnInformational<'_>,
    cx: &mut Context<'_>,
) -> Poll<Result<Result<Response<h2::RecvStream>, h2::Error>, FailureCause>> {
    while let Poll::Ready(Some(Ok(interim))) = answer.poll_informational(cx) {
        *informational += 1;
        if *informational > MAX_INFORMATIONAL {
            return Poll::Ready(Err(FailureCause::InvalidResponse("informational answers without end".into())));
        }
        on_informational(interim);
    }
    Pin::new(answer).poll(cx).map(Ok)
}

/// Whether a request with this method is expected to have a body, though an empty one.
fn means_a_body(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::DELETE | Method::CONNECT)
}

/// h2 holds the server to the first that it states.
fn stated_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// What went wrong. `is_whole`: the request is what it was.
fn blame(error: h2::Error, is_whole: bool) -> AttemptError {
    // A GOAWAY reaches only requests above the last one that the server looked at.
    if error.is_remote() && (error.is_go_away() || error.reason() == Some(Reason::REFUSED_STREAM)) {
        return AttemptError::Refused { error: error.into(), is_whole };
    }
    if error.is_remote() {
        AttemptError::Failed(FailureCause::Closed(error.into()))
    } else if error.is_library() {
        AttemptError::Failed(FailureCause::InvalidResponse(error.into()))
    } else {
        AttemptError::Disconnected(error.into())
    }
}

/// The body of an answer.
#[derive(Debug)]
pub(in crate::upstream) struct Http2ResponseBody {
    body: http2::Body,
    /// What of the request is still being sent. Given up when this is dropped before its end.
    upload: Option<AbortOnDropHandle<()>>,
    patience: LazyTimer,
    /// As long as the request is under way.
    _place: StreamGuard,
}

impl Http2ResponseBody {
    /// The next part. After the last one nobody has to ask again: [`Self::is_through`] tells.
    pub(in crate::upstream) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.body.poll_frame(cx).map_err(Into::into)
    }

    pub(in crate::upstream) fn is_through(&self) -> bool {
        self.body.is_through()
    }

    pub(in crate::upstream) fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }

    pub(in crate::upstream) fn patience(&mut self) -> &mut LazyTimer {
        &mut self.patience
    }

    /// It is through: what is left of the request may still be of use.
    pub(in crate::upstream) fn rest(self) {
        if let Some(upload) = self.upload {
            upload.detach();
        }
    }
}
