//! The parts of a request that Envoy has shown, and that wait for the decision.

use bytes::Bytes;
use envoy_types::pb::envoy::extensions::filters::http::ext_proc::v3::processing_mode::BodySendMode;
use envoy_types::pb::envoy::service::ext_proc::v3::HeaderMutation;
use envoy_types::pb::envoy::service::ext_proc::v3::HttpBody;
use envoy_types::pb::envoy::service::ext_proc::v3::processing_request::Request as Part;
use tonic::Status;

use super::replies::ChangeablePart;
use super::shown_stream::ShownStream;
use crate::fronts::envoy::description::BadDescription;
use crate::gateway::admit::body::DescribedBodyWriter;
use crate::gateway::admit::body::DescribedEnd;

/// The head, which is answered when the decision needs the body or is there; and the parts behind it.
#[derive(Debug)]
pub(super) struct RequestParts {
    pub(super) body: DescribedBodyWriter,
    /// How many bytes of the body may be read.
    bound: usize,
    /// How many have come.
    shown: usize,
    /// Something comes behind the head.
    is_open: bool,
    pub(super) is_head_answered: bool,
    unanswered: Vec<Part>,
}

impl RequestParts {
    /// What comes behind the head is a body unless the request `is_upgrade`.
    pub(super) fn new(body: DescribedBodyWriter, bound: usize, is_open: bool, is_upgrade: bool) -> Self {
        if !is_open || is_upgrade {
            body.end(DescribedEnd::Whole);
        }
        Self { body, bound, shown: 0, is_open, is_head_answered: false, unanswered: Vec::new() }
    }

    /// Whether more parts may come before the decision.
    pub(super) fn has_room(&self) -> bool {
        self.unanswered.len() < MAX_UNANSWERED
    }

    /// A limit reads the body, which comes behind the answer to the head.
    pub(super) fn ask_for_body(&mut self, stream: &mut ShownStream) -> Result<(), Status> {
        if stream.modes.request_body == Some(BodySendMode::None) {
            return Err(stream.context.bad_description(BadDescription::Missing("request_body")));
        }
        self.is_head_answered = true;
        let modes = stream.modes.ask_for_start_of_body();
        stream.replies.change(ChangeablePart::RequestHeaders, None, modes);
        Ok(())
    }

    /// Takes a part of the request. Its answer waits for the decision.
    pub(super) fn take(&mut self, stream: &ShownStream, part: Part) -> Result<(), Status> {
        match part {
            Part::RequestBody(HttpBody { body, end_of_stream, .. }) => {
                let left = self.bound.saturating_sub(self.shown);
                self.shown += body.len();
                // A copy of what may be read: the message is not kept.
                self.body.push(Bytes::copy_from_slice(&body[..body.len().min(left)]));
                if self.shown > self.bound {
                    self.body.end(DescribedEnd::Cut);
                } else if end_of_stream {
                    self.body.end(DescribedEnd::Whole);
                } else if stream.modes.sends_one_message() {
                    self.body.end(DescribedEnd::Cut);
                }
                self.unanswered.push(Part::RequestBody(HttpBody::default()));
            }
            Part::RequestTrailers(trailers) => {
                self.body.end(DescribedEnd::Whole);
                self.unanswered.push(Part::RequestTrailers(trailers));
            }
            Part::RequestHeaders(_) => {
                return Err(stream.context.bad_description(BadDescription::Twice("request_headers")));
            }
            Part::ResponseHeaders(_) | Part::ResponseBody(_) | Part::ResponseTrailers(_) => {
                return Err(stream.context.bad_description(BadDescription::Undecided));
            }
        }
        Ok(())
    }

    /// Lets all parts go on, and changes the head, if it has not gone yet.
    pub(super) fn let_pass(self, stream: &mut ShownStream, changes: HeaderMutation) {
        let mut changes = Some(changes);
        if !self.is_head_answered {
            let modes = stream.modes.ask_for_no_body(self.is_open);
            stream.replies.change(ChangeablePart::RequestHeaders, changes.take(), modes);
        }
        for part in &self.unanswered {
            match part {
                // Envoy keeps the head back until it has the answer to a body that comes in one message.
                Part::RequestBody(_) if stream.modes.sends_one_message() => {
                    stream.replies.change(ChangeablePart::RequestBody, changes.take(), None);
                }
                part => stream.replies.pass_on(part),
            }
        }
    }
}

/// A part takes little memory. Envoy sends what it buffers, a few hundred KiB, in parts of 16 KiB.
const MAX_UNANSWERED: usize = 256;
