//! The interface to the code that answers requests.

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use http::StatusCode;

use super::Connection;
use super::IncomingRequest;
use super::InterimSender;
use super::Response;
use super::ResponseBody;
use crate::head::Fields;

/// Answers requests.
pub trait RequestHandler: Clone + Send + Sync + 'static {
    type Body: ResponseBody;

    /// Answers one request. The future is dropped when the client goes away. A client that sent `Expect: 100-continue` is
    /// asked for its body over `interim`.
    ///
    /// The handler must bound reading the request's body without progress. Everything else of a connection is bounded by its
    /// [`Settings`](super::Settings).
    fn handle(
        &self,
        connection: Arc<Connection>,
        request: IncomingRequest,
        interim: InterimSender,
    ) -> impl Future<Output = Response<Self::Body>> + Send + Unpin + 'static;

    /// Answers an invalid head. Over HTTP/1 its connection is closed.
    fn refuse(&self, connection: &Connection, refused: RefusedHead) -> Refusal;
}

/// The answer to an invalid head.
#[derive(Debug, Default)]
pub struct Refusal {
    /// Those beside the fields of the protocol, the length and the date.
    pub fields: Fields,
    /// A short one: it is written at once.
    pub body: Bytes,
}

/// The head of a request that was invalid.
#[derive(Clone, Debug)]
pub struct RefusedHead {
    pub status: StatusCode,
    /// The parts that could be read all the same.
    pub method: Option<Method>,
    pub path: Option<String>,
    pub query: Option<String>,
    pub host: Option<String>,
}

impl RefusedHead {
    /// No part of the head could be read.
    pub(super) fn unread(status: StatusCode) -> Self {
        Self { status, method: None, path: None, query: None, host: None }
    }
}
