//! An application's answer on its way through.

use std::error::Error;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use bytes::Bytes;
use http_body::Body;
use http_body::Frame;
use http_body::SizeHint;
use tracing::warn;

use super::headers;
use crate::gateway::admit::expect::Invitation;
use crate::gateway::story::Story;
use crate::upstream::AnswerBody;

pub(in crate::gateway) type BoxError = Box<dyn Error + Send + Sync>;

/// An application's answer while it streams. The story ends with it.
#[derive(Debug)]
pub struct Relay {
    pub(super) body: AnswerBody,
    pub(in crate::gateway) story: Box<Story>,
    /// Keeps a body that the application never asked for from ending its connection under the answer.
    _invitation: Option<Invitation>,
}

impl Relay {
    pub(in crate::gateway) fn new(body: AnswerBody, story: Box<Story>, invitation: Option<Invitation>) -> Self {
        Self { body, story, _invitation: invitation }
    }

    pub(in crate::gateway) fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    pub(in crate::gateway) fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }

    pub(in crate::gateway) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
            Some(Ok(mut frame)) => {
                if let Some(data) = frame.data_ref() {
                    self.story.bytes_out += data.len() as u64;
                } else if let Some(trailers) = frame.trailers_mut() {
                    headers::filter_trailers(trailers);
                }
                Some(Ok(frame))
            }
            // The client sees it cut short as well: its connection ends without the end of the body.
            Some(Err(error)) => Some(Err(self.cut_short(error.into()))),
            None => None,
        })
    }

    fn cut_short(&mut self, error: BoxError) -> BoxError {
        let server = self.story.sent.as_mut().and_then(|sent| {
            sent.failure = Some("cut_short");
            sent.server.clone()
        });
        warn!(
            request_id = self.story.request_id.as_str(),
            server = server.as_deref(),
            %error,
            "the application's answer was cut short",
        );
        self.story.error = Some("the answer was cut short".into());
        error
    }
}
