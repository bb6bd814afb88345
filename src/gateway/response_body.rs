//! The body of a response: none, the gateway's own, or the application's.

use std::mem;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;

use bytes::Bytes;
use http_body::Body;
use http_body::Frame;
use http_body::SizeHint;
use http_body_util::combinators::UnsyncBoxBody;

use crate::gateway::admit::expect::ContinueSignal;
use crate::gateway::exchange::Exchange;
use crate::gateway::forward::inspected_body::InspectedBody;
use crate::gateway::forward::outcome_watch::OutcomeWatch;
use crate::gateway::forward::relayed_body::BoxError;
use crate::gateway::forward::relayed_body::RelayedBody;
use crate::listen;
use crate::pool::Buffer;
use crate::pool::Pooled;
use crate::upstream::UpstreamBody;

/// The body that a client gets.
#[derive(Debug)]
pub enum ResponseBody {
    Empty,
    /// A configured page or text.
    Full(Bytes),
    /// Written for this request.
    Written(Buffer),
    Relayed(Pooled<RelayedBody>),
    /// The application's, on a route with an outcome.
    Inspected(InspectedBody),
    /// Written while it is read, as by a service that answers other proxies. It may have trailers.
    Streamed(UnsyncBoxBody<Bytes, BoxError>),
}

impl ResponseBody {
    /// `watch`: the outcome of the answer, if it is not known yet.
    pub fn relay(
        body: UpstreamBody,
        exchange: Pooled<Exchange>,
        continue_signal: Option<ContinueSignal>,
        watch: Option<OutcomeWatch>,
    ) -> Self {
        let relay = RelayedBody::new(body, exchange, continue_signal);
        match watch {
            None => Self::Relayed(Pooled::new(relay)),
            Some(watch) => Self::Inspected(InspectedBody::new(relay, watch)),
        }
    }

    /// Waits for the outcome, and takes the device cookie that the answer sets.
    pub async fn take_device_cookie(&mut self) -> Option<String> {
        match self {
            Self::Empty | Self::Full(_) | Self::Written(_) | Self::Streamed(_) => None,
            Self::Relayed(relay) => relay.exchange.take_device_cookie(),
            Self::Inspected(inspected) => Box::pin(inspected.look_ahead()).await?.take_device_cookie(),
        }
    }

    /// The client left before it got the head.
    #[must_use]
    pub fn without_client(mut self) -> Self {
        match &mut self {
            Self::Empty | Self::Full(_) | Self::Written(_) | Self::Streamed(_) => {}
            Self::Relayed(relay) => relay.exchange.clear_status(),
            Self::Inspected(inspected) => inspected.without_client(),
        }
        self
    }
}

impl listen::ResponseBody for ResponseBody {
    fn write_whole(&mut self, out: &mut Vec<u8>, length: u64) -> bool {
        match self {
            Self::Written(content) if content.len() as u64 == length => out.extend_from_slice(content),
            Self::Relayed(relay) => return relay.write_whole(out, length),
            _ => return false,
        }
        true
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
            Self::Written(content) => {
                let content = Bytes::copy_from_slice(content);
                *this = Self::Empty;
                Poll::Ready(Some(Ok(Frame::data(content))))
            }
            Self::Relayed(relay) => relay.poll_frame(cx),
            Self::Inspected(inspected) => inspected.poll_frame(cx),
            Self::Streamed(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Full(content) => content.is_empty(),
            Self::Written(content) => content.is_empty(),
            Self::Relayed(relay) => relay.is_end_stream(),
            Self::Inspected(inspected) => inspected.is_end_stream(),
            Self::Streamed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Full(content) => SizeHint::with_exact(content.len() as u64),
            Self::Written(content) => SizeHint::with_exact(content.len() as u64),
            Self::Relayed(relay) => relay.size_hint(),
            Self::Inspected(inspected) => inspected.size_hint(),
            Self::Streamed(body) => body.size_hint(),
        }
    }
}
