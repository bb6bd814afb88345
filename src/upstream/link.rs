//! One connection to a server, over all requests it carries.

use std::sync::Arc;
use std::sync::Weak;
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
    pub(super) wire: Arc<Wire>,
    pub(super) patience: Alarm,
    pub(super) server: ServerId,
    pub(super) idle: Duration,
    home: Weak<Idle<B>>,
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
}

/// What hyper makes of a request in the end.
pub(super) type Handed<B> = Result<Response<Incoming>, TrySendError<Request<Upload<B>>>>;

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
