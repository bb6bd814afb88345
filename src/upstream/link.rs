//! One connection to a server, over all requests it carries.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::Weak;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::Response;
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use tracing::debug;

use super::error::Cause;
use super::pool::Idle;
use super::server::Server;
use super::server::ServerId;
use super::stream::Stream;
use super::wire::Line;
use super::wire::Upload;
use super::wire::Wire;
use crate::alarm::Alarm;

/// A connection and what belongs to it.
#[derive(Debug)]
pub(super) struct Link<B> {
    sender: SendRequest<Upload<B>>,
    wire: Arc<Wire>,
    pub(super) patience: Alarm,
    pub(super) server: ServerId,
    pub(super) idle: Duration,
    home: Weak<Idle<B>>,
}

/// Why a request got no answer on a connection.
pub(super) enum Failed<B> {
    /// No byte of it was written.
    Unwritten(Box<Request<B>>, hyper::Error),
    /// The connection ended before a byte of an answer.
    Died(hyper::Error),
    Fault(Cause),
}

impl<B> Link<B>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    pub(super) async fn open(
        stream: Stream,
        server: &Server,
        idle: Duration,
        home: Weak<Idle<B>>,
    ) -> Result<Self, hyper::Error> {
        let wire = Arc::new(Wire::new());
        let line = TokioIo::new(Line::new(stream, Arc::clone(&wire)));
        let mut builder = http1::Builder::new();
        builder.max_buf_size(MAX_BUFFER);
        let (sender, connection) = builder.handshake(line).await?;
        let name = Arc::clone(server.name());
        tokio::spawn(async move {
            if let Err(error) = connection.with_upgrades().await {
                debug!(server = %name, %error, "connection to a server ended");
            }
        });
        Ok(Self { sender, wire, patience: Alarm::default(), server: server.id, idle, home })
    }

    /// Whether it can carry a request.
    pub(super) fn is_ready(&self) -> bool {
        self.sender.is_ready()
    }

    /// Hands a request over.
    pub(super) fn hand_over(&mut self, request: Request<B>) -> impl Future<Output = Handed<B>> + use<B> {
        let uploading = !request.body().is_end_stream();
        self.wire.begin(uploading);
        let request = request
            .map(|body| if uploading { Upload::noted(body, Arc::clone(&self.wire)) } else { Upload::empty(body) });
        self.sender.try_send_request(request)
    }

    /// Waits for the head of the answer to what was handed over, `patience` long from when the server is due.
    pub(super) async fn answer(
        &mut self,
        mut handed: Pin<&mut impl Future<Output = Handed<B>>>,
        patience: Duration,
    ) -> Result<Response<Incoming>, Failed<B>> {
        poll_fn(|cx| {
            if let Poll::Ready(answer) = handed.as_mut().poll(cx) {
                return Poll::Ready(answer.map_err(|failed| self.wire.blame(failed)));
            }
            let deadline = self.wire.server_is_due_since() + patience;
            self.patience.poll_at(deadline, cx).map(|()| Err(Failed::Fault(Cause::ResponseTimeout)))
        })
        .await
    }
}

/// What hyper makes of a request in the end.
type Handed<B> = Result<Response<Incoming>, TrySendError<Request<Upload<B>>>>;

impl Wire {
    fn blame<B>(&self, mut failed: TrySendError<Request<Upload<B>>>) -> Failed<B> {
        let unwritten = failed.take_message();
        let error = failed.into_error();
        if let Some(request) = unwritten {
            Failed::Unwritten(Box::new(request.map(|upload| upload.body)), error)
        } else if error.is_user() {
            Failed::Fault(Cause::RequestBody(error))
        } else if error.is_parse() {
            Failed::Fault(Cause::Nonsense(error))
        } else if self.answered() {
            Failed::Fault(Cause::Closed(error))
        } else {
            Failed::Died(error)
        }
    }
}

/// A connection whose kind of request body does not matter any more: it can only rest, or be dropped and so closed.
pub(super) trait Rest: std::fmt::Debug + Send {
    fn patience(&mut self) -> &mut Alarm;

    /// Its answer has ended: it goes back to where it came from.
    fn rest(self: Box<Self>);
}

impl<B> Rest for Link<B>
where
    B: Send + std::fmt::Debug + 'static,
{
    fn patience(&mut self) -> &mut Alarm {
        &mut self.patience
    }

    fn rest(self: Box<Self>) {
        if let Some(home) = self.home.upgrade() {
            home.put(self);
        }
    }
}

/// Bounds an answer's head, and what is read of its body at once: a few such parts are kept for a client that does not
/// take them.
const MAX_BUFFER: usize = 16 * 1024;
