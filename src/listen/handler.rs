//! The interface to the code that answers requests.

use std::cell::RefCell;
use std::error::Error;
use std::future::pending;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body::{Body, Frame, SizeHint};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Connection;
use crate::listen::OnUpgrade;
use crate::listen::http1::{Http1InterimSender, Http1RequestBody};
use crate::listen::http2::Http2InterimSender;
use crate::wire::head::{Fields, RequestHead, ResponseHead};
use crate::wire::http1::grammar::{IncompleteBody, InvalidMessage};
use crate::wire::http2;
use crate::words::clock;

/// Answers requests.
pub trait RequestHandler: Clone + Send + Sync + 'static {
    type Body: ResponseBody;

    /// Answers one request. The future is dropped when the client goes away. A client that sent `Expect: 100-continue` is
    /// asked for its body over `interim`.
    ///
    /// The handler must bound reading the request's body without progress. Everything else of a connection is bounded by its
    /// [`ConnectionSettings`](super::ConnectionSettings).
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
    /// The fields, without the fields of the protocol, the length and the date.
    pub fields: Fields,
    /// A short one: it is written at once.
    pub body: Bytes,
}

/// The head of a request that was invalid.
#[derive(Debug)]
pub struct RefusedHead {
    pub status: StatusCode,
    /// The parts that could be read all the same.
    pub method: Option<Method>,
    pub path: Option<String>,
    pub query: Option<String>,
    pub host: Option<String>,
    /// The fields of the request that were read, such as `Accept`, which chooses the form of the answer.
    pub fields: Fields,
}

impl RefusedHead {
    /// The refusal of a head that could be read only this far.
    pub(super) fn unread(status: StatusCode, method: Option<Method>, fields: Fields) -> Self {
        Self { status, method, path: None, query: None, host: None, fields }
    }
}

// A request as it arrives.

/// A request of a client.
#[derive(Debug)]
pub struct IncomingRequest {
    pub head: RequestHead,
    pub body: IncomingBody,
    /// The connection, for a client that asks for another protocol.
    pub upgrade: Option<OnUpgrade>,
}

// A response to a client.

/// A response, whose body follows its head.
#[derive(Debug)]
pub struct Response<B> {
    pub head: ResponseHead,
    pub body: B,
}

/// The body of a response.
pub trait ResponseBody: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin + 'static {
    /// Writes the whole body, if all of it is at hand and it has this length, and ends it. `false`: it is read part by part.
    fn write_whole(&mut self, _out: &mut Vec<u8>, _length: u64) -> bool {
        false
    }
}

// The versions of HTTP that clients speak.

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ClientProtocol {
    Http1,
    Http2,
}

// Sends interim responses (1xx) to a client.

/// Sends interim responses to the client of one request, until its response begins. Later ones, and those that the client
/// does not read in time, are dropped: the client does not need them.
#[derive(Clone, Debug, Default)]
pub struct InterimSender(Target);

#[derive(Clone, Debug, Default)]
enum Target {
    /// HTTP/1.0: the client would take an interim response for the final one.
    #[default]
    None,
    Http1(Http1InterimSender),
    Http2(Http2InterimSender),
}

impl InterimSender {
    /// Sends an interim response. It must have no fields that belong to one connection.
    pub fn send(&self, head: ResponseHead) {
        match &self.0 {
            Target::None => {}
            Target::Http1(sender) => sender.send(&head),
            Target::Http2(sender) => sender.send(head),
        }
    }

    /// Asks the client for the body (100 Continue).
    pub fn send_continue(&self) {
        self.send(ResponseHead::of(StatusCode::CONTINUE));
    }
}

impl From<Http1InterimSender> for InterimSender {
    fn from(sender: Http1InterimSender) -> Self {
        Self(Target::Http1(sender))
    }
}

impl From<Http2InterimSender> for InterimSender {
    fn from(sender: Http2InterimSender) -> Self {
        Self(Target::Http2(sender))
    }
}

// The `Date` field. It is formatted once a second and copied in between.

/// Writes the current date.
pub(super) fn write(out: &mut Vec<u8>) {
    let second = clock::wall().as_micros() / 1_000_000;
    FORMATTED.with_borrow_mut(|(written, date)| {
        if *written != Some(second) {
            (*written, *date) = (Some(second), format(second));
        }
        out.extend_from_slice(date.as_bytes());
    });
}

thread_local! {
    /// The second, and its date.
    static FORMATTED: RefCell<(Option<u64>, String)> = const { RefCell::new((None, String::new())) };
}

/// Formats a date as RFC 9110 (section 5.6.7) demands.
fn format(second: u64) -> String {
    let moment = i64::try_from(second).ok().and_then(|second| Timestamp::from_second(second).ok());
    // A clock beyond the calendar has no date: the epoch stands in for it.
    let moment = moment.unwrap_or(Timestamp::UNIX_EPOCH);
    DateTimePrinter::new().timestamp_to_rfc9110_string(&moment).unwrap_or_default()
}

// Bounds the memory that the concurrent requests of one connection use together.

/// In bytes: a body up to this size needs no share. Logins are shorter.
pub const SHARE_FREE: usize = 4 * 1024;

/// How many bodies of the greatest size fit into the budget.
pub const CONCURRENT_BODIES: usize = 32;

/// The bytes that all requests of a connection may buffer together. A request that asks for more than is left waits.
#[derive(Debug, Default)]
pub struct Budget(OnceLock<Total>);

#[derive(Debug)]
struct Total {
    bytes: usize,
    free: Arc<Semaphore>,
}

/// A part of a budget. It goes back when this is dropped.
#[derive(Debug)]
pub struct BudgetShare(OwnedSemaphorePermit);

impl Budget {
    /// Waits for `bytes` of the budget. `max_body` is the most that one request can use; the first call decides the size of
    /// the budget by it. A request for more than the whole budget gets all of it.
    ///
    /// A request asks once, for all that it may need, so that no two requests wait for each other.
    pub async fn share(&self, bytes: usize, max_body: usize) -> BudgetShare {
        let total = self.0.get_or_init(|| {
            let bytes = max_body.saturating_mul(CONCURRENT_BODIES).min(Semaphore::MAX_PERMITS);
            Total { bytes, free: Arc::new(Semaphore::new(bytes)) }
        });
        let bytes = u32::try_from(bytes.min(total.bytes)).unwrap_or(u32::MAX);
        match Arc::clone(&total.free).acquire_many_owned(bytes).await {
            Ok(share) => BudgetShare(share),
            // It is never closed.
            Err(_) => pending().await,
        }
    }
}

impl BudgetShare {
    /// Ties a share to its bytes. The part that they do not need goes back now, the rest when they are dropped.
    pub fn of(share: Option<Self>, bytes: Bytes) -> Bytes {
        let Some(mut share) = share else { return bytes };
        if let Some(rest) = share.0.num_permits().checked_sub(bytes.len()) {
            drop(share.0.split(rest));
        }
        Bytes::from_owner(Shared { bytes, _share: share })
    }
}

struct Shared {
    bytes: Bytes,
    _share: BudgetShare,
}

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

// The body of a request, over HTTP/1 or HTTP/2.

/// The body of a request. It is read when it is polled.
#[derive(Debug, Default)]
pub struct IncomingBody(Kind);

#[derive(Debug, Default)]
enum Kind {
    #[default]
    Empty,
    Http1(Http1RequestBody),
    Http2(http2::Body),
}

impl From<Http1RequestBody> for IncomingBody {
    fn from(body: Http1RequestBody) -> Self {
        Self(Kind::Http1(body))
    }
}

impl From<http2::Body> for IncomingBody {
    fn from(body: http2::Body) -> Self {
        Self(Kind::Http2(body))
    }
}

impl Body for IncomingBody {
    type Data = Bytes;
    type Error = IncomingBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, IncomingBodyError>>> {
        match &mut self.0 {
            Kind::Empty => Poll::Ready(None),
            Kind::Http1(body) => body.poll_frame(cx),
            Kind::Http2(body) => body.poll_frame(cx).map_err(IncomingBodyError::Stream),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Empty => true,
            Kind::Http1(body) => body.is_complete(),
            Kind::Http2(body) => body.is_complete(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Http1(body) => body.remaining().map_or_else(SizeHint::new, SizeHint::with_exact),
            Kind::Http2(body) => body.size_hint(),
        }
    }
}

// Why the body of a request broke off.

/// Why a body broke off.
#[derive(Debug, thiserror::Error)]
pub enum IncomingBodyError {
    #[error("{0}")]
    Invalid(#[from] InvalidMessage),
    #[error("{0}")]
    Incomplete(#[from] IncompleteBody),
    #[error("{0}")]
    Stream(#[from] h2::Error),
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    const MAX_BODY: usize = 100;
    const TOTAL: usize = CONCURRENT_BODIES * MAX_BODY;

    /// The share, if it is free at once.
    fn share(budget: &Budget, bytes: usize) -> Option<BudgetShare> {
        match pin!(budget.share(bytes, MAX_BODY)).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(share) => Some(share),
            Poll::Pending => None,
        }
    }

    #[test]
    fn shares_never_exceed_the_total_and_go_back() {
        let budget = Budget::default();
        let first = share(&budget, TOTAL - 40);
        assert!(first.is_some() && share(&budget, 60).is_none());
        let rest = share(&budget, 40);
        assert!(rest.is_some() && share(&budget, 1).is_none());
        drop((first, rest));
        assert!(share(&budget, TOTAL).is_some());
    }

    #[test]
    fn a_share_is_as_large_as_its_bytes_and_lives_as_long() {
        let budget = Budget::default();
        let bytes = BudgetShare::of(share(&budget, TOTAL), Bytes::from_static(b"user=alice"));
        assert!(share(&budget, TOTAL - 9).is_none() && share(&budget, TOTAL - 10).is_some());
        let part = bytes.slice(..1);
        drop(bytes);
        assert!(share(&budget, TOTAL).is_none());
        drop(part);
        assert!(share(&budget, TOTAL).is_some());
    }

    #[test]
    fn a_request_for_more_than_the_budget_gets_all_of_it() {
        let budget = Budget::default();
        let all = share(&budget, 10 * TOTAL);
        assert!(all.is_some() && share(&budget, 1).is_none());
    }

    #[test]
    fn a_date_is_the_one_of_rfc_9110() {
        assert_eq!(format(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(format(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(format(u64::MAX), format(0));
    }
}
