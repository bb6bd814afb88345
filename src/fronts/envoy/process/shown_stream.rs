//! What all parts of a stream share.

use envoy_types::pb::envoy::service::ext_proc::v3::ProcessingRequest;
use envoy_types::pb::envoy::service::ext_proc::v3::processing_request::Request as Part;
use tonic::Status;
use tonic::Streaming;

use super::modes::Modes;
use super::replies::Replies;
use crate::fronts::envoy::call;
use crate::fronts::envoy::call_context::CallContext;
use crate::fronts::envoy::description::BadDescription;

/// A stream of messages, each of which Envoy waits to be answered.
#[derive(Debug)]
pub(super) struct ShownStream {
    pub(super) context: CallContext,
    pub(super) messages: Streaming<ProcessingRequest>,
    pub(super) replies: Replies,
    pub(super) modes: Modes,
}

impl ShownStream {
    /// The next message; `None` after the last. Where the future is dropped, no byte is lost.
    pub(super) async fn next(&mut self) -> Result<Option<ProcessingRequest>, Status> {
        let message = self.messages.message().await.map_err(call::unreadable);
        if let Err(status) = &message {
            self.context.unreadable(status);
        }
        message
    }

    /// Lets a part go on that needs no decision. A stream has one request, which was decided.
    pub(super) fn pass_on(&self, part: &Part) -> Result<(), Status> {
        if matches!(part, Part::RequestHeaders(_)) {
            return Err(self.context.bad_description(BadDescription::Twice("request_headers")));
        }
        self.replies.pass_on(part);
        Ok(())
    }
}
