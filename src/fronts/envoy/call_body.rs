//! The body of a call, as far as its messages come in time, and there is room for them.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::task::ready;
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use http_body::Frame;
use tokio::time::timeout;
use tonic::Status;

use super::message_progress::MessageProgress;
use crate::gateway::GatewaySettings;
use crate::listen::BudgetShare;
use crate::listen::Connection;
use crate::listen::IncomingBody;
use crate::listen::SHARE_FREE;
use crate::timer::ProgressTimeout;

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

    /// Waits for room for the message that has begun, if it is long. That of the one before goes back: its reader asks for
    /// more only when it has taken all that came.
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

impl Body for CallBody {
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

/// In bytes: the longest message that gRPC libraries take where they are not told otherwise. Envoy buffers a quarter of it.
pub(super) const MAX_MESSAGE: usize = 4 * 1024 * 1024;

/// How long to wait for room. Bytes that came on other streams meanwhile may take the window of those that it waits for.
const MAX_WAIT_FOR_ROOM: Duration = Duration::from_secs(1);
