//! The interface to the code that answers requests.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;
use http::Method;
use http::Request;
use http::Response;
use http::StatusCode;
use http::Uri;
use http_body::Body;

use super::Connection;
use super::IncomingBody;
use super::InterimSender;

/// Answers requests.
pub trait RequestHandler: Clone + Send + Sync + 'static {
    type Body: Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + Unpin + 'static;

    /// Answers one request. The future is dropped when the client goes away. A client that sent `Expect: 100-continue` is
    /// asked for its body over `interim`.
    ///
    /// The handler must bound reading the request's body without progress. Everything else of a connection is bounded by its
    /// [`Settings`](super::Settings).
    fn handle(
        &self,
        connection: Arc<Connection>,
        request: Request<IncomingBody>,
        interim: InterimSender,
    ) -> impl Future<Output = Response<Self::Body>> + Send + 'static;

    /// Called for an invalid head, after it was answered. Over HTTP/1 its connection is closed.
    fn refused(&self, _connection: &Connection, _refused: RefusedHead) {}
}

/// The head of a request that was invalid.
#[derive(Clone, Debug)]
pub struct RefusedHead {
    pub status: StatusCode,
    /// The parts that could be read all the same.
    pub method: Option<Method>,
    pub target: Option<Uri>,
    pub host: Option<HeaderValue>,
}

impl RefusedHead {
    /// No part of the head could be read.
    pub(super) fn unread(status: StatusCode) -> Self {
        Self { status, method: None, target: None, host: None }
    }
}
