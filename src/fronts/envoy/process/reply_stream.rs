//! What Envoy gets on a stream, while its session runs.

use std::fmt;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;

use envoy_types::pb::envoy::service::ext_proc::v3::ProcessingResponse;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::mpsc::unbounded_channel;
use tonic::Status;
use tonic::codegen::tokio_stream::Stream;

use super::replies::Replies;

/// The replies of a session, then its status. The session runs only while this is polled and all replies are taken, so that an
/// asker that reads nothing is read no further. Dropped, as when the asker leaves, it drops the session.
pub(in crate::fronts::envoy) struct ReplyStream {
    replies: UnboundedReceiver<ProcessingResponse>,
    session: Session,
}

enum Session {
    Running(Pin<Box<dyn Future<Output = Result<(), Status>> + Send>>),
    Failed(Status),
    Over,
}

impl ReplyStream {
    pub(super) fn run<F>(session: impl FnOnce(Replies) -> F) -> Self
    where
        F: Future<Output = Result<(), Status>> + Send + 'static,
    {
        let (sender, replies) = unbounded_channel();
        Self { replies, session: Session::Running(Box::pin(session(Replies::new(sender)))) }
    }
}

impl Stream for ReplyStream {
    type Item = Result<ProcessingResponse, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Ok(reply) = this.replies.try_recv() {
                return Poll::Ready(Some(Ok(reply)));
            }
            match &mut this.session {
                Session::Running(session) => match session.as_mut().poll(cx) {
                    Poll::Ready(Ok(())) => this.session = Session::Over,
                    Poll::Ready(Err(status)) => this.session = Session::Failed(status),
                    Poll::Pending if this.replies.is_empty() => return Poll::Pending,
                    Poll::Pending => {}
                },
                Session::Failed(status) => {
                    let status = status.clone();
                    this.session = Session::Over;
                    return Poll::Ready(Some(Err(status)));
                }
                Session::Over => return Poll::Ready(None),
            }
        }
    }
}

impl fmt::Debug for ReplyStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyStream").finish_non_exhaustive()
    }
}
