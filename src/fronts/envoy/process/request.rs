//! Decides about the request of a stream.

use std::pin::pin;

use envoy_types::pb::envoy::service::ext_proc::v3::HttpHeaders;
use envoy_types::pb::envoy::service::ext_proc::v3::ProcessingRequest;
use envoy_types::pb::envoy::service::ext_proc::v3::processing_request::Request as Part;
use tonic::Status;

use super::attributes;
use super::attributes::Attributes;
use super::replies;
use super::request_parts::RequestParts;
use super::response;
use super::shown_stream::ShownStream;
use crate::fronts::envoy::description;
use crate::fronts::envoy::description::BadDescription;
use crate::fronts::envoy::description::Description;
use crate::fronts::envoy::description::PSEUDO_HEADERS;
use crate::fronts::envoy::header_values;
use crate::fronts::envoy::judge::judge;
use crate::fronts::envoy::request_changes::OriginalFields;
use crate::gateway::Passed;
use crate::gateway::admit::body::DescribedBody;
use crate::gateway::exchange::Exchange;
use crate::gateway::facts::Front;
use crate::pool::Pooled;

/// What has become of the request of a stream.
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
            exchange.set_passed_on();
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
    let own = response::own_answer(&message.attributes)?;
    Ok(own.map(|(reason, _)| reason))
}

/// The address of the client is an attribute, where the filter has `request_attributes: [source.address]`.
fn describe(
    description: &mut Description,
    headers: HttpHeaders,
    attributes: &Attributes,
) -> Result<(), BadDescription> {
    let headers = headers.headers.ok_or(BadDescription::Missing("request_headers"))?;
    if header_values::has_two_values(&headers.headers) {
        return Err(BadDescription::Twice("request_headers"));
    }
    for (name, value) in headers.headers.iter().map(header_values::name_and_value) {
        description.add(name, value)?;
    }
    if let Some(source) = attributes::text(attributes, PSEUDO_HEADERS.source)? {
        let address = description::address(source);
        description.source = Some(address.ok_or(BadDescription::Malformed(PSEUDO_HEADERS.source))?);
    }
    Ok(())
}
