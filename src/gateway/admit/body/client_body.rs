//! Where the body of a request comes from.

use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::Version;
use http::request::Parts;
use http_body::Body;
use http_body::Frame;
use http_body::SizeHint;
use tokio::runtime::Handle;

use crate::listen::IncomingBody;
use crate::listen::IncomingBodyError;

/// A client's body.
#[derive(Debug)]
pub struct ClientBody {
    /// Until it is dropped.
    incoming: Option<IncomingBody>,
    is_stream: bool,
}

impl ClientBody {
    /// The head of a request, and its body.
    pub fn of(request: Request<IncomingBody>) -> (Parts, Self) {
        let (parts, incoming) = request.into_parts();
        let is_stream = parts.version == Version::HTTP_2;
        (parts, Self { incoming: Some(incoming), is_stream })
    }
}

impl Body for ClientBody {
    type Data = Bytes;
    type Error = IncomingBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, IncomingBodyError>>> {
        self.incoming.as_mut().map_or(Poll::Ready(None), |incoming| Pin::new(incoming).poll_frame(cx))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for ClientBody {
    /// Of a stream that was answered but not read to its end the client is told with a reset, right behind the answer.
    /// Clients that read both at once (curl before version 8) take it for a failure and show no answer. So the reset
    /// comes by itself.
    fn drop(&mut self) {
        let Some(incoming) = self.incoming.take() else { return };
        if !self.is_stream || incoming.is_end_stream() {
            return;
        }
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                tokio::time::sleep(BEHIND_THE_ANSWER).await;
                drop(incoming);
            });
        }
    }
}

/// The answer is on its way by then, in a packet of its own.
const BEHIND_THE_ANSWER: Duration = Duration::from_millis(100);
