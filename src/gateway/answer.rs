//! The body of an answer: none, one of our own, or the application's on its way through.

use std::error::Error;
use std::mem;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use bytes::Bytes;
use http::HeaderValue;
use http_body::Body;
use http_body::Frame;
use http_body::SizeHint;
use tracing::warn;

use super::expect::Invitation;
use super::headers;
use super::inspect::Inspected;
use super::inspect::Watch;
use super::story::Story;
use crate::upstream::AnswerBody;

pub(super) type BoxError = Box<dyn Error + Send + Sync>;

/// What a client is sent after the head.
#[derive(Debug)]
pub enum ResponseBody {
    Empty,
    Full(Bytes),
    Relayed(Box<Relay>),
    /// On a route with an outcome.
    Inspected(Inspected),
}

/// An application's answer while it streams. The story ends with it.
#[derive(Debug)]
pub struct Relay {
    pub(super) body: AnswerBody,
    pub(super) story: Box<Story>,
    /// Keeps a body that the application never asked for from ending its connection under the answer.
    _invitation: Option<Invitation>,
}

impl ResponseBody {
    /// `watch`: what is still to be found out about the answer.
    pub fn relay(body: AnswerBody, story: Box<Story>, invitation: Option<Invitation>, watch: Option<Watch>) -> Self {
        let relay = Relay { body, story, _invitation: invitation };
        match watch {
            None => Self::Relayed(Box::new(relay)),
            Some(watch) => Self::Inspected(Inspected::new(relay, watch)),
        }
    }

    /// The cookie that is to be set with this answer, once its outcome is known.
    pub async fn welcome(&mut self) -> Option<HeaderValue> {
        match self {
            Self::Empty | Self::Full(_) => None,
            Self::Relayed(relay) => relay.story.welcome(),
            Self::Inspected(inspected) => Box::pin(inspected.look_ahead()).await?.welcome(),
        }
    }

    /// The client left before the head came.
    #[must_use]
    pub fn without_reader(mut self) -> Self {
        match &mut self {
            Self::Empty | Self::Full(_) => {}
            Self::Relayed(relay) => relay.story.status = None,
            Self::Inspected(inspected) => inspected.without_reader(),
        }
        self
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        match this {
            Self::Empty => Poll::Ready(None),
            Self::Full(content) => {
                let content = mem::take(content);
                *this = Self::Empty;
                Poll::Ready(Some(Ok(Frame::data(content))))
            }
            Self::Relayed(relay) => relay.poll_frame(cx),
            Self::Inspected(inspected) => inspected.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Full(content) => content.is_empty(),
            Self::Relayed(relay) => relay.is_end_stream(),
            Self::Inspected(inspected) => inspected.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Full(content) => SizeHint::with_exact(content.len() as u64),
            Self::Relayed(relay) => relay.size_hint(),
            Self::Inspected(inspected) => inspected.size_hint(),
        }
    }
}

impl Relay {
    pub(super) fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }

    pub(super) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
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
