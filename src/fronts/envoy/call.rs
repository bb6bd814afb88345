//! Hands a call to its service, and the answer of the service to the connection.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use http_body::Frame;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use tokio::time::timeout;
use tonic::body::Body;
use tonic::{Code, Status};
use tower::Service;

use crate::gateway::{GatewaySettings, ResponseBody};
use crate::listen::{BudgetShare, Connection, IncomingBody, Response, SHARE_FREE};
use crate::wire::head::{Fields, KnownName, Name, RequestHead, ResponseHead};
use crate::words::timer::ProgressTimeout;

const GRPC_ENCODING: &str = "grpc-encoding";

const INTERNAL: &[u8] = b"13";

const INVALID_ARGUMENT: &[u8] = b"3";

/// The call as services take it.
pub(super) fn request(head: &RequestHead, body: CallBody) -> http::Request<CallBody> {
    let mut request = http::Request::new(body);
    // A path that is none calls nothing.
    *request.uri_mut() = head.to_path_and_query().map(http::Uri::from).unwrap_or_default();
    let compression = head.fields.single(Name::of(GRPC_ENCODING)).map(HeaderValue::from_bytes);
    if let Some(Ok(compression)) = compression {
        request.headers_mut().insert(GRPC_ENCODING, compression);
    }
    request
}

/// Has the service answer the call. `None` as the status: it is in the trailers, because the service has read the message.
pub(super) async fn answer<S>(
    mut service: S,
    request: http::Request<CallBody>,
) -> (Response<ResponseBody>, Option<Status>)
where
    S: Service<http::Request<CallBody>, Response = http::Response<Body>, Error = Infallible>,
{
    match service.call(request).await {
        Ok(response) => {
            let status = Status::from_header_map(response.headers());
            (written(response), status)
        }
        Err(never) => match never {},
    }
}

/// The answer to a call that no service takes.
pub(super) fn refuse(status: Status) -> Response<ResponseBody> {
    written(status.into_http())
}

/// The status for a message that could not be read. tonic takes that for a fault of its own.
pub(super) fn unreadable(status: Status) -> Status {
    match status.code() {
        Code::Internal => Status::invalid_argument(status.message()),
        _ => status,
    }
}

fn written(response: http::Response<Body>) -> Response<ResponseBody> {
    let (parts, body) = response.into_parts();
    let head = ResponseHead::new(parts.status, fields(&parts.headers));
    Response { head, body: ResponseBody::Streamed(UnsyncBoxBody::<Bytes, _>::new(body.map_err(Into::into))) }
}

fn fields(headers: &HeaderMap) -> Fields {
    let mut fields = Fields::default();
    for (name, value) in headers {
        fields.append(Name::of(name.as_str()), value.as_bytes());
    }
    // A status in the head means that the message of a call with one message could not be read: services do not answer
    // this status.
    if fields.get(KnownName::GRPC_STATUS) == Some(INTERNAL) {
        fields.insert(KnownName::GRPC_STATUS, INVALID_ARGUMENT);
    }
    fields
}

// The body of a call, as far as its messages come in time, and there is room for them.

/// In bytes: the longest message that gRPC libraries take where they are not told otherwise. Envoy buffers a quarter of it.
pub(super) const MAX_MESSAGE: usize = 4 * 1024 * 1024;

/// How long to wait for room. Other streams may take the window of the connection meanwhile.
const MAX_WAIT_FOR_ROOM: Duration = Duration::from_secs(1);

/// Reads the body of a call. Before a long message is read, it waits for room beside the other calls of the connection.
#[derive(Debug)]
pub(super) struct CallBody {
    body: IncomingBody,
    connection: Arc<Connection>,
    messages: Messages,
    progress: MessageProgress,
    room: Room,
    /// In bytes: what one call keeps of a message for longer. It sizes the budget.
    kept: usize,
    timeout: ProgressTimeout,
}

/// How many messages a call has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Messages {
    One,
    /// A stream. Only the first must come at once.
    Many,
}

/// Room for the message that is being received.
#[derive(Debug)]
struct Room {
    /// The number of the message that it is for.
    message: usize,
    state: RoomState,
}

enum RoomState {
    NotNeeded,
    Awaited(Pin<Box<dyn Future<Output = Option<BudgetShare>> + Send>>),
    Found { _share: BudgetShare },
}

impl CallBody {
    pub(super) fn new(
        body: IncomingBody,
        messages: Messages,
        connection: &Arc<Connection>,
        settings: &GatewaySettings,
    ) -> Self {
        Self {
            body,
            connection: Arc::clone(connection),
            messages,
            progress: MessageProgress::default(),
            room: Room { message: 0, state: RoomState::NotNeeded },
            kept: settings.inspect_body.max(SHARE_FREE),
            timeout: ProgressTimeout::new(settings.body_idle, settings.body_rate),
        }
    }

    /// Waits for room for the message that has begun, if it is long. The room of the previous message is given back:
    /// its reader asks for more only when it has taken the whole message.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Status>> {
        let message = self.progress.begun();
        if let Some(length) = self.progress.length()
            && self.room.message != message
        {
            self.room = Room { message, state: RoomState::NotNeeded };
            if length > SHARE_FREE {
                let (connection, kept) = (Arc::clone(&self.connection), self.kept);
                let share = async move { timeout(MAX_WAIT_FOR_ROOM, connection.peeked.share(length, kept)).await.ok() };
                self.room.state = RoomState::Awaited(Box::pin(share));
            }
        }
        if let RoomState::Awaited(share) = &mut self.room.state {
            let Some(share) = ready!(share.as_mut().poll(cx)) else {
                let message = "too many long messages are open on this connection";
                return Poll::Ready(Err(Status::resource_exhausted(message)));
            };
            self.room.state = RoomState::Found { _share: share };
        }
        Poll::Ready(Ok(()))
    }

    /// Whether the other end must send something now: it has begun a message, or it has nothing else to wait for.
    fn is_due(&self) -> bool {
        self.messages == Messages::One || self.progress.is_within() || self.progress.begun() == 0
    }

    fn check(&self) -> Result<(), Status> {
        if self.messages == Messages::One && self.progress.begun() > 1 {
            return Err(Status::invalid_argument("the call has more than one message"));
        }
        match self.progress.length() {
            Some(length) if length > MAX_MESSAGE => {
                let message = format!("a message of {length} bytes is longer than {MAX_MESSAGE}");
                Err(Status::resource_exhausted(message))
            }
            _ => Ok(()),
        }
    }
}

impl http_body::Body for CallBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        if let Err(status) = ready!(this.poll_room(cx)) {
            return Poll::Ready(Some(Err(status)));
        }
        let frame = match Pin::new(&mut this.body).poll_frame(cx) {
            Poll::Ready(frame) => frame,
            Poll::Pending if this.is_due() => {
                ready!(this.timeout.poll_expired(cx));
                return Poll::Ready(Some(Err(Status::deadline_exceeded("the message took too long to arrive"))));
            }
            Poll::Pending => return Poll::Pending,
        };
        let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
        this.timeout.moved(data.map_or(0, Bytes::len));
        let mut left = data.map_or(&[][..], |data| data);
        while !left.is_empty() {
            left = this.progress.advance(left);
            if let Err(status) = this.check() {
                return Poll::Ready(Some(Err(status)));
            }
        }
        Poll::Ready(frame.map(|frame| frame.map_err(|_| Status::unavailable("the call broke off"))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

impl fmt::Debug for RoomState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotNeeded => "NotNeeded",
            Self::Awaited(_) => "Awaited",
            Self::Found { .. } => "Found",
        })
    }
}

// Where the messages of a call begin and end.

/// The bytes before a message.
const PREFIX: usize = 5;

/// Counts messages while their bytes come. Before each stand a byte that says whether it is compressed, and its length.
#[derive(Debug, Default)]
pub(super) struct MessageProgress {
    begun: usize,
    prefix: [u8; PREFIX],
    /// How many bytes of the prefix have come.
    known: usize,
    /// How many bytes of the message have not come yet.
    left: usize,
}

impl MessageProgress {
    /// How many messages have begun.
    pub(super) fn begun(&self) -> usize {
        self.begun
    }

    /// Whether the last message that has begun is not whole.
    pub(super) fn is_within(&self) -> bool {
        self.left > 0 || (1..PREFIX).contains(&self.known)
    }

    /// In bytes: the length of the message that has begun last. `None` while its prefix is not whole.
    pub(super) fn length(&self) -> Option<usize> {
        let [_, length @ ..] = self.prefix;
        (self.known == PREFIX).then(|| usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX))
    }

    /// Takes bytes, at least one and at most to the end of a prefix or of a message. Returns the others.
    pub(super) fn advance<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        if self.left > 0 {
            let (_, rest) = bytes.split_at(self.left.min(bytes.len()));
            self.left -= bytes.len() - rest.len();
            return rest;
        }
        let Some((first, rest)) = bytes.split_first() else { return bytes };
        if self.known == PREFIX {
            self.known = 0;
        }
        if self.known == 0 {
            self.begun += 1;
        }
        self.prefix[self.known] = *first;
        self.known += 1;
        self.left = self.length().unwrap_or_default();
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After all of these bytes, in parts of `part` bytes: how many messages have begun, and whether the last is whole.
    fn read(bytes: &[u8], part: usize) -> (usize, bool) {
        let mut progress = MessageProgress::default();
        for mut left in bytes.chunks(part) {
            while !left.is_empty() {
                left = progress.advance(left);
            }
        }
        (progress.begun(), !progress.is_within())
    }

    #[test]
    fn messages_begin_and_end_wherever_their_bytes_are_parted() {
        let login = b"\0\0\0\0\x07\x0a\x05login";
        let twice = [&login[..], login].concat();
        let empty = b"\0\0\0\0\0";
        for part in 1..=twice.len() {
            assert_eq!(read(b"", part), (0, true));
            assert_eq!(read(b"\0", part), (1, false));
            assert_eq!(read(&login[..11], part), (1, false));
            assert_eq!(read(login, part), (1, true));
            assert_eq!(read(&twice[..14], part), (2, false));
            assert_eq!(read(&twice, part), (2, true));
            assert_eq!(read(&[&empty[..], empty, login].concat(), part), (3, true));
        }
    }

    #[test]
    fn a_length_is_known_with_its_prefix() {
        let mut progress = MessageProgress::default();
        for byte in [0, 0xff, 0xff, 0xff] {
            assert!(progress.advance(&[byte]).is_empty());
            assert_eq!(progress.length(), None);
        }
        progress.advance(&[0xff]);
        assert_eq!(progress.length(), Some(u32::MAX as usize));
    }
}
