//! Sends one request over a connection, and reads the head of its answer.

use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, SendStream};
use http::header::{CONNECTION, CONTENT_LENGTH, HOST};
use http::uri::{Authority, Scheme};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, uri};
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::connection::{Http2Connection, StreamGuard};
use crate::upstream::error::{AttemptError, BoxError, FailureCause};
use crate::upstream::http2::head_check::{ResponseStream, ResponseStreams};
use crate::upstream::response::{MAX_INFORMATIONAL, MAX_PASSED_ON, OnInformational};
use crate::upstream::send::{OutgoingRequest, ReplayBody};
use crate::upstream::server::Server;
use crate::wire::head::ResponseHead;
use crate::wire::http2;
use crate::wire::http2::poll_room;
use crate::words::coalesce::CoalescingBody;
use crate::words::timer::LazyTimer;

/// The stream of one request, on a connection that it shares with others.
#[derive(Debug)]
pub(in crate::upstream) struct Http2Stream {
    sender: SendRequest<Bytes>,
    responses: ResponseStreams,
    guard: StreamGuard,
    timer: LazyTimer,
    is_https: bool,
    /// The authority of a request whose `Host` is no authority.
    fallback: Arc<str>,
}

impl Http2Stream {
    pub(super) fn new(connection: &Http2Connection, server: &Server) -> Self {
        let Http2Connection { sender, responses, state } = connection;
        let (is_https, fallback) = (server.tls.is_some(), Arc::clone(server.host()));
        let (sender, responses, guard) = (sender.clone(), responses.clone(), StreamGuard::new(state));
        Self { sender, responses, guard, timer: LazyTimer::default(), is_https, fallback }
    }

    /// Sends a request, and waits for the head of its answer. `timeout` runs while the server is to move. The rest of a
    /// request whose answer came early is sent in a task beside the answer.
    ///
    /// After a failure [`AttemptError`] says whether the request is as it was. After a lost connection its body is not.
    pub(in crate::upstream) async fn exchange<B>(
        mut self,
        request: &mut OutgoingRequest<'_, B>,
        timeout: Duration,
        on_informational: OnInformational<'_>,
    ) -> Result<(ResponseHead, Http2ResponseBody), AttemptError>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + ReplayBody + Default + Send + Unpin + 'static,
    {
        if let Err(error) = poll_fn(|cx| self.sender.poll_ready(cx)).await {
            self.guard.retire_connection();
            return Err(AttemptError::Unwritten(error.into()));
        }
        let is_upload = !request.body.is_end_stream();
        let outgoing = self.outgoing(request);
        let (mut answer, stream) =
            self.sender.send_request(outgoing, !is_upload).map_err(|error| AttemptError::Disconnected(error.into()))?;
        let received = self.responses.begin(answer.stream_id().as_u32());
        let began = Instant::now();
        let mut upload = is_upload.then(|| Upload::new(mem::take(request.body), stream));
        let mut informational = 0;
        let answered = poll_fn(|cx| {
            if let Some(upload) = &mut upload
                && let Poll::Ready(Err(error)) = upload.poll(cx)
            {
                return Poll::Ready(Err(AttemptError::BodyBroken { error, is_sent: true }));
            }
            if let Poll::Ready(answered) = poll_answer(&mut answer, &received, &mut informational, on_informational, cx)
            {
                return Poll::Ready(answered.map_err(AttemptError::Failed));
            }
            let server_is_due = upload.as_ref().map_or(Some(began), Upload::server_is_due_since);
            match server_is_due {
                Some(since) => self
                    .timer
                    .poll_at(since + timeout, cx)
                    .map(|()| Err(AttemptError::Failed(FailureCause::ResponseTimeout))),
                None => Poll::Pending,
            }
        });
        match answered.await? {
            Ok(response) => {
                let rest = upload.filter(|upload| !upload.is_complete()).map(|mut upload| {
                    upload.stop_keeping();
                    AbortOnDropHandle::new(tokio::spawn(async move {
                        // A failure shows in the answer.
                        let _ = poll_fn(|cx| upload.poll(cx)).await;
                    }))
                });
                let length = stated_length(response.headers());
                let Self { guard, timer, .. } = self;
                let head = ResponseHead::from_headers(response.status(), response.headers());
                let body = http2::Body::new(response.into_body(), length);
                Ok((head, Http2ResponseBody { body, received, upload: rest, timer, _guard: guard }))
            }
            Err(error) => {
                let mut is_whole = true;
                if let Some(upload) = upload {
                    let body = upload.take_back();
                    is_whole = body.is_some();
                    *request.body = body.unwrap_or_default();
                }
                let failed = attempt_error(error, is_whole);
                if !matches!(failed, AttemptError::Failed(_)) {
                    // The connection may be ending.
                    self.guard.retire_connection();
                }
                Err(failed)
            }
        }
    }

    /// The head of a request in HTTP/2: `Host` becomes the authority, and fields about a connection of HTTP/1.1 are left out.
    fn outgoing<B: Body>(&self, request: &OutgoingRequest<'_, B>) -> Request<()> {
        let mut head = Request::new(());
        *head.method_mut() = request.head.method.clone();
        *head.headers_mut() = request.head.fields.to_header_map();
        let fields = head.headers_mut();
        let host = fields.remove(HOST);
        fields.remove(CONNECTION);
        if let Some(length) = request.body.size_hint().exact()
            && (length > 0 || means_a_body(&request.head.method))
        {
            fields.entry(CONTENT_LENGTH).or_insert_with(|| HeaderValue::from(length));
        }
        let host = host.and_then(|host| Authority::try_from(host.as_bytes()).ok());
        let mut target = uri::Parts::default();
        target.path_and_query = request.head.to_path_and_query();
        target.authority = host.or_else(|| self.fallback.parse().ok());
        target.scheme = Some(if self.is_https { Scheme::HTTPS } else { Scheme::HTTP });
        *head.uri_mut() = Uri::from_parts(target).unwrap_or_default();
        head
    }
}

/// Ready with the answer, or with why there is none. Informational answers ahead of it go to `on_informational`.
fn poll_answer(
    answer: &mut ResponseFuture,
    received: &ResponseStream,
    informational: &mut u32,
    on_informational: OnInformational<'_>,
    cx: &mut Context<'_>,
) -> Poll<Result<Result<Response<h2::RecvStream>, h2::Error>, FailureCause>> {
    received.check().map_err(|error| FailureCause::InvalidResponse(error.into()))?;
    while let Poll::Ready(Some(Ok(interim))) = answer.poll_informational(cx) {
        if interim.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Poll::Ready(Err(FailureCause::UnexpectedUpgrade));
        }
        *informational += 1;
        if *informational > MAX_INFORMATIONAL {
            return Poll::Ready(Err(FailureCause::InvalidResponse("informational answers without end".into())));
        }
        if *informational <= MAX_PASSED_ON {
            on_informational(ResponseHead::from_headers(interim.status(), interim.headers()));
        }
    }
    Pin::new(answer).poll(cx).map(Ok)
}

/// Whether a request with this method is expected to have a body, though an empty one.
fn means_a_body(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::DELETE | Method::CONNECT)
}

/// The first `Content-Length`: h2 holds the server to it.
fn stated_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Classifies an error of h2. `is_whole`: nothing of the request was consumed.
fn attempt_error(error: h2::Error, is_whole: bool) -> AttemptError {
    // A GOAWAY reaches only requests after the last request that the server processed.
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
    received: ResponseStream,
    /// Sends the rest of the request. Stops when this is dropped before its end.
    upload: Option<AbortOnDropHandle<()>>,
    timer: LazyTimer,
    /// Counts the request as under way.
    _guard: StreamGuard,
}

impl Http2ResponseBody {
    /// The next part. [`Self::is_complete`] says whether it was the last.
    pub(in crate::upstream) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.received.check()?;
        self.body.poll_frame(cx).map_err(Into::into)
    }

    pub(in crate::upstream) fn is_complete(&self) -> bool {
        self.body.is_complete()
    }

    pub(in crate::upstream) fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }

    pub(in crate::upstream) fn timer(&mut self) -> &mut LazyTimer {
        &mut self.timer
    }

    /// The answer is complete. The rest of the request is still sent.
    pub(in crate::upstream) fn finish(self) {
        if let Some(upload) = self.upload {
            upload.detach();
        }
    }
}

// A request's body on its way to a server. It knows whether it waits for the server or for the client, for the timeout
// of the server.

/// A body that is not empty, and that the server may refuse unread.
#[derive(Debug)]
pub(super) struct Upload<B> {
    body: CoalescingBody<B>,
    stream: SendStream<Bytes>,
    /// When the request, or a part of its body, last went out.
    progress: Instant,
    state: UploadState,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum UploadState {
    /// The server takes no more for now.
    WaitsForServer,
    /// The client has not sent the next part.
    WaitsForClient,
    /// All is sent, or the server wants no more.
    Complete,
}

impl<B: ReplayBody> Upload<B> {
    pub(super) fn new(mut body: B, stream: SendStream<Bytes>) -> Self {
        body.keep();
        Self { body: CoalescingBody::new(body), stream, progress: Instant::now(), state: UploadState::WaitsForServer }
    }

    /// Since when the server is to move. `None`: the client is.
    pub(super) fn server_is_due_since(&self) -> Option<Instant> {
        (self.state != UploadState::WaitsForClient).then_some(self.progress)
    }

    pub(super) fn is_complete(&self) -> bool {
        self.state == UploadState::Complete
    }

    /// The body from its beginning. `None`: more of it was sent than it keeps.
    pub(super) fn take_back(self) -> Option<B> {
        let mut body = self.body.into_inner();
        body.replay().then_some(body)
    }

    /// The body is not needed a second time.
    pub(super) fn stop_keeping(&mut self) {
        self.body.get_mut().stop_keeping();
    }
}

impl<B> Upload<B>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    /// Ready when all is sent, or when the server wants no more. Fails if the body fails.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        while self.state != UploadState::Complete {
            if self.stream.poll_reset(cx).is_ready() {
                self.end();
                break;
            }
            self.state = UploadState::WaitsForServer;
            // One byte only: capacity that one stream reserves is missing to the others.
            self.stream.reserve_capacity(1);
            ready!(poll_room(&mut self.stream, cx));
            self.state = UploadState::WaitsForClient;
            let part = ready!(Pin::new(&mut self.body).poll_frame(cx));
            self.progress = Instant::now();
            // If the server wants no more, its answer says so.
            match part.map(|part| part.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => {
                    let is_last = self.body.is_end_stream();
                    if self.stream.send_data(data, is_last).is_err() || is_last {
                        self.end();
                    }
                }
                Some(Ok(Err(frame))) => {
                    if let Ok(trailers) = frame.into_trailers() {
                        drop(self.stream.send_trailers(trailers));
                        self.end();
                    }
                }
                Some(Err(error)) => {
                    self.end();
                    self.stream.send_reset(Reason::INTERNAL_ERROR);
                    return Poll::Ready(Err(error));
                }
                None => {
                    drop(self.stream.send_data(Bytes::new(), true));
                    self.end();
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    fn end(&mut self) {
        (self.state, self.progress) = (UploadState::Complete, Instant::now());
    }
}
