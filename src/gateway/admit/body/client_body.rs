//! The body as the client sends it.

use std::mem;
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

use super::described_body::DescribedBody;
use crate::listen::IncomingBody;
use crate::listen::IncomingBodyError;

/// The body that a client sends.
#[derive(Debug)]
pub struct ClientBody(Source);

#[derive(Debug)]
enum Source {
    /// Only while this is dropped.
    Taken,
    /// From the connection of the client.
    Incoming {
        body: IncomingBody,
        is_stream: bool,
    },
    Described(DescribedBody),
}

impl ClientBody {
    /// The body of a request of this version.
    pub fn new(incoming: IncomingBody, version: Version) -> Self {
        Self(Source::Incoming { body: incoming, is_stream: version == Version::HTTP_2 })
    }

    /// Whether the body comes only if it is asked for: whoever does not need it must not read it.
    pub fn is_unasked(&self) -> bool {
        matches!(&self.0, Source::Described(body) if body.is_unasked())
    }
}

impl From<DescribedBody> for ClientBody {
    fn from(body: DescribedBody) -> Self {
        Self(Source::Described(body))
    }
}

impl Body for ClientBody {
    type Data = Bytes;
    type Error = IncomingBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, IncomingBodyError>>> {
        match &mut self.0 {
            Source::Incoming { body, .. } => Pin::new(body).poll_frame(cx),
            Source::Described(body) => body.poll_frame(cx),
            Source::Taken => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Source::Incoming { body, .. } => body.is_end_stream(),
            Source::Described(body) => body.is_end_stream(),
            Source::Taken => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Source::Incoming { body, .. } => body.size_hint(),
            Source::Described(body) => body.size_hint(),
            Source::Taken => SizeHint::with_exact(0),
        }
    }
}

impl Drop for ClientBody {
    /// Dropping an HTTP/2 body that was not read to its end resets its stream, right behind the answer. Clients that
    /// read both at once (curl before version 8) take the reset for a failure and show no answer. So the reset is sent
    /// later.
    fn drop(&mut self) {
        let Source::Incoming { body, is_stream: true } = mem::replace(&mut self.0, Source::Taken) else { return };
        if body.is_end_stream() {
            return;
        }
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                tokio::time::sleep(RESET_DELAY).await;
                drop(body);
            });
        }
    }
}

/// By then the answer was sent, in a packet of its own.
const RESET_DELAY: Duration = Duration::from_millis(100);
