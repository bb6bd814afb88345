//! Observes the answer to the request of a stream.

use envoy_types::pb::envoy::config::core::v3::HeaderMap;
use envoy_types::pb::envoy::config::core::v3::HeaderValueOption;
use envoy_types::pb::envoy::service::ext_proc::v3::HeaderMutation;
use envoy_types::pb::envoy::service::ext_proc::v3::HttpHeaders;
use envoy_types::pb::envoy::service::ext_proc::v3::processing_request::Request as Part;
use http::StatusCode;
use tonic::Status;

use super::attributes;
use super::attributes::Attributes;
use super::code_details::unanswered;
use super::replies;
use super::replies::ChangeablePart;
use super::shown_stream::ShownStream;
use crate::fronts::envoy::description::BadDescription;
use crate::fronts::envoy::header_values;
use crate::fronts::envoy::header_values::Write;
use crate::gateway::ShownAnswer;
use crate::gateway::Unanswered;
use crate::gateway::exchange::Exchange;
use crate::head::Fields;
use crate::head::KnownName;
use crate::head::Name;
use crate::outcome::inspection::BodyEnd;
use crate::pool::Pooled;

/// Settles the request by its answer, and keeps its concurrency slots until the stream ends.
pub(super) async fn observe(
    stream: &mut ShownStream,
    exchange: Pooled<Exchange>,
    headers: HttpHeaders,
    attributes: &Attributes,
) -> Result<(), Status> {
    let is_through = headers.end_of_stream;
    let shown = headers.headers.and_then(|map| read_head(&map));
    let Some((status, fields)) = shown else {
        return Err(stream.context.bad_description(BadDescription::Missing("response_headers")));
    };
    let own = own_answer(attributes).map_err(|bad| stream.context.bad_description(bad))?;
    let mut answer = match own {
        Some((details, unanswered)) => ShownAnswer::missing(exchange, status, unanswered, details).await,
        None => ShownAnswer::begin(exchange, status, &fields, is_through).await,
    };
    let mut changes = replies::of_answer(&answer.own_fields());
    changes.set_headers.extend(device_cookie(&mut answer));
    let modes = if is_through { None } else { stream.modes.ask_for_answer(answer.needed_body()) };
    stream.replies.change(ChangeablePart::ResponseHeaders, Some(changes), modes);
    while let Some(message) = stream.next().await? {
        match message.request {
            Some(Part::ResponseBody(body)) => {
                answer.feed(&body.body).await;
                if body.end_of_stream {
                    answer.end(BodyEnd::Whole).await;
                }
                // Where Envoy keeps the head back until it has this answer, the cookie is still in time.
                let cookie = device_cookie(&mut answer);
                let changes =
                    cookie.map(|cookie| HeaderMutation { set_headers: vec![cookie], ..HeaderMutation::default() });
                stream.replies.change(ChangeablePart::ResponseBody, changes, None);
            }
            Some(Part::ResponseTrailers(trailers)) => {
                answer.end(BodyEnd::Whole).await;
                stream.replies.pass_on(&Part::ResponseTrailers(trailers));
            }
            Some(part) => stream.pass_on(&part)?,
            None => {}
        }
    }
    answer.end(BodyEnd::Cut).await;
    Ok(())
}

/// Why Envoy has answered by itself. `None`: the application has answered, or Envoy is not set up to say who has.
pub(super) fn own_answer(attributes: &Attributes) -> Result<Option<(&str, Unanswered)>, BadDescription> {
    let details = attributes::text(attributes, CODE_DETAILS)?;
    Ok(details.and_then(|details| Some((details, unanswered(details)?))))
}

fn read_head(map: &HeaderMap) -> Option<(StatusCode, Fields)> {
    let (mut status, mut fields) = (None, Fields::default());
    for (name, value) in map.headers.iter().map(header_values::name_and_value) {
        match name {
            ":status" => status = StatusCode::from_bytes(value).ok(),
            name => fields.append(Name::of(name), value),
        }
    }
    Some((status?, fields))
}

/// The device cookie of a success, once.
fn device_cookie(answer: &mut ShownAnswer) -> Option<HeaderValueOption> {
    let cookie = answer.take_device_cookie()?;
    Some(header_values::raw(KnownName::SET_COOKIE.as_str(), cookie.as_bytes(), Write::Append))
}

const CODE_DETAILS: &str = "response.code_details";
