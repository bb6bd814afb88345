//! Relays the body of an application's answer.

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
use crate::gateway::admit::expect::ContinueSignal;
use crate::gateway::exchange::Exchange;
use crate::pool::Pooled;
use crate::upstream::UpstreamBody;

pub(in crate::gateway) type BoxError = Box<dyn Error + Send + Sync>;

/// The body of an application's answer while it streams. The exchange ends with it.
#[derive(Debug)]
pub struct RelayedBody {
    pub(super) body: UpstreamBody,
    pub(in crate::gateway) exchange: Pooled<Exchange>,
    /// Kept until the answer has ended, so that a body that the application never asked for does not close the
    /// connection during the answer.
    _continue_signal: Option<ContinueSignal>,
    /// Whether the client is still connected, so that bytes count as sent.
    counts_bytes: bool,
}

impl RelayedBody {
    pub(in crate::gateway) fn new(
        body: UpstreamBody,
        exchange: Pooled<Exchange>,
        continue_signal: Option<ContinueSignal>,
    ) -> Self {
        Self { body, exchange, _continue_signal: continue_signal, counts_bytes: true }
    }

    /// The client has left: bytes from now on are not sent.
    pub(super) fn stop_counting(&mut self) {
        self.counts_bytes = false;
    }

    /// Writes the whole body, if all of it is at hand and it has this length.
    pub(in crate::gateway) fn write_whole(&mut self, out: &mut Vec<u8>, length: u64) -> bool {
        let is_written = self.body.write_whole(out, length);
        if is_written && self.counts_bytes {
            self.exchange.add_bytes_out(length);
        }
        is_written
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
                    if self.counts_bytes {
                        self.exchange.add_bytes_out(data.len() as u64);
                    }
                } else if let Some(trailers) = frame.trailers_mut() {
                    headers::filter_trailers(trailers);
                }
                Some(Ok(frame))
            }
            // The client's answer is cut short as well: its connection closes before the end of the body.
            Some(Err(error)) => Some(Err(self.cut_short(error.into()))),
            None => None,
        })
    }

    fn cut_short(&mut self, error: BoxError) -> BoxError {
        self.exchange.set_failure("cut_short");
        warn!(
            request_id = self.exchange.facts.request_id.as_str(),
            server = self.exchange.server(),
            %error,
            "the application's answer was cut short",
        );
        self.exchange.set_error("the answer was cut short");
        error
    }
}
