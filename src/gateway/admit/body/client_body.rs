//! The body as the client sends it.

use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::Version;
use http_body::Body;
use http_body::Frame;
use http_body::SizeHint;
use tokio::runtime::Handle;

use crate::listen::IncomingBody;
use crate::listen::IncomingBodyError;

/// The body that a client sends.
#[derive(Debug)]
pub struct ClientBody {
    /// `None` only while this is dropped.
    incoming: Option<IncomingBody>,
    is_stream: bool,
}

impl ClientBody {
    /// The body of a request of this version.
    pub fn new(incoming: IncomingBody, version: Version) -> Self {
        Self { incoming: Some(incoming), is_stream: version == Version::HTTP_2 }
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
    /// Dropping an HTTP/2 body that was not read to its end resets its stream, right behind the answer. Clients that
    /// read both at once (curl before version 8) take the reset for a failure and show no answer. So the reset is sent
    /// later.
    fn drop(&mut self) {
        let Some(incoming) = self.incoming.take() else { return };
        if !self.is_stream || incoming.is_end_stream() {
            return;
        }
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                tokio::time::sleep(RESET_DELAY).await;
                drop(incoming);
            });
        }
    }
}

/// By then the answer was sent, in a packet of its own.
const RESET_DELAY: Duration = Duration::from_millis(100);
