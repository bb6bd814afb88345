//! Decides about the request of a stream.

use std::pin::pin;

use bytes::Bytes;
use envoy_types::pb::envoy::extensions::filters::http::ext_proc::v3::processing_mode::BodySendMode;
use envoy_types::pb::envoy::service::ext_proc::v3::processing_request::Request as Part;
use envoy_types::pb::envoy::service::ext_proc::v3::{HeaderMutation, HttpBody, HttpHeaders, ProcessingRequest};
use tonic::Status;

use super::replies;
use crate::fronts::envoy::check::OriginalFields;
use crate::fronts::envoy::description::{BadDescription, Description, PSEUDO_HEADERS};
use crate::fronts::envoy::process::replies::ChangeablePart;
use crate::fronts::envoy::process::session::ShownStream;
use crate::fronts::envoy::process::{Attributes, session};
use crate::fronts::envoy::service::judge;
use crate::fronts::envoy::{description, process};
use crate::gateway::Passed;
use crate::gateway::body::{DescribedBody, DescribedBodyWriter, DescribedEnd};
use crate::gateway::exchange::Exchange;
use crate::gateway::stages::Front;
use crate::words::pool::Pooled;

/// The state of the request of a stream.
#[derive(Debug)]
pub(super) enum Decided {
    Passed(Pooled<Exchange>),
    /// It does not go on, or Envoy has ended the stream.
    Over,
    /// Envoy did not wait for the decision. This message shows its own answer.
    AnsweredByEnvoy(Box<ProcessingRequest>),
}

/// Answers all parts of the request that have come.
pub(super) async fn decide(
    stream: &mut ShownStream,
    headers: HttpHeaders,
    attributes: &Attributes,
) -> Result<Decided, Status> {
    let context = stream.context.clone();
    let is_open = !headers.end_of_stream;
    let mut description = Description::default();
    if let Err(bad) = describe(&mut description, headers, attributes) {
        return Err(context.bad_description(context.undescribed(&description, bad)));
    }
    let original = OriginalFields::of(description.fields());
    let (body, writer) = DescribedBody::channel();
    let mut parts = RequestParts::new(writer, context.live.settings.inspect_body, is_open, description.is_upgrade());
    let mut judged = pin!(judge(&context, description, &PSEUDO_HEADERS, body.into(), Front::ExtProc));
    let judged = loop {
        tokio::select! {
            biased;
            judged = &mut judged => break judged.map_err(|bad| context.bad_description(bad))?,
            () = parts.body.wanted(), if !parts.is_head_answered => parts.ask_for_body(stream)?,
            message = stream.next(), if parts.has_room() => {
                let Some(message) = message? else { return Ok(Decided::Over) };
                if let Some(reason) = reason_of_envoy(&message).map_err(|bad| context.bad_description(bad))? {
                    context.fault.set_ended(&format_args!("Envoy answered before the decision: {reason}"));
                    return Ok(Decided::AnsweredByEnvoy(Box::new(message)));
                }
                if let Some(part) = message.request {
                    parts.take(stream, part)?;
                }
            }
        }
    };
    match judged {
        Ok(Passed { mut exchange, .. }) => {
            let changes = replies::of_request(&original.changes(&mut exchange));
            parts.let_pass(stream, changes);
            Ok(Decided::Passed(exchange))
        }
        Err(denied) => {
            stream.replies.deny(denied);
            Ok(Decided::Over)
        }
    }
}

/// Why Envoy has answered by itself, as when a timeout has passed, where the message shows that answer.
fn reason_of_envoy(message: &ProcessingRequest) -> Result<Option<&str>, BadDescription> {
    let Some(Part::ResponseHeaders(_)) = message.request else { return Ok(None) };
    let own = session::own_answer(&message.attributes)?;
    Ok(own.map(|(reason, _)| reason))
}

/// The address of the client is an attribute, where the filter has `request_attributes: [source.address]`.
fn describe(
    description: &mut Description,
    headers: HttpHeaders,
    attributes: &Attributes,
) -> Result<(), BadDescription> {
    let headers = headers.headers.ok_or(BadDescription::Missing("request_headers"))?;
    if description::has_two_values(&headers.headers) {
        return Err(BadDescription::Twice("request_headers"));
    }
    for (name, value) in headers.headers.iter().map(description::name_and_value) {
        description.add(name, value)?;
    }
    if let Some(source) = process::text(attributes, PSEUDO_HEADERS.source)? {
        let address = description::address(source);
        description.source = Some(address.ok_or(BadDescription::Malformed(PSEUDO_HEADERS.source))?);
    }
    Ok(())
}

// The parts of a request that Envoy has shown, and that wait for the decision.

/// A part takes little memory. Envoy sends what it buffers, a few hundred KiB, in parts of 16 KiB.
const MAX_UNANSWERED: usize = 256;

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
    /// The bytes after the head are a body unless the request `is_upgrade`.
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
