//! One stream: a request, and then its answer; or an answer of Envoy to a request that it does not show.

use envoy_types::pb::envoy::config::core::v3::{HeaderMap, HeaderValueOption};
use envoy_types::pb::envoy::service::ext_proc::v3::external_processor_server::ExternalProcessor;
use envoy_types::pb::envoy::service::ext_proc::v3::processing_request::Request as Part;
use envoy_types::pb::envoy::service::ext_proc::v3::{HeaderMutation, HttpHeaders, ProcessingRequest};
use http::StatusCode;
use tonic::{Request, Response, Status, Streaming};

use super::request;
use super::request::Decided;
use crate::fronts::envoy::description::{BadDescription, Write};
use crate::fronts::envoy::process::replies::{ChangeablePart, Replies, ReplyStream};
use crate::fronts::envoy::process::{Attributes, Modes, replies, unanswered};
use crate::fronts::envoy::service::CallContext;
use crate::fronts::envoy::{call, description, process};
use crate::gateway::exchange::Exchange;
use crate::gateway::{ShownAnswer, Unanswered};
use crate::rules::outcome::inspection::BodyEnd;
use crate::wire::head::{Fields, KnownName, Name};
use crate::words::pool::Pooled;

#[tonic::async_trait]
impl ExternalProcessor for CallContext {
    type ProcessStream = ReplyStream;

    async fn process(&self, call: Request<Streaming<ProcessingRequest>>) -> Result<Response<ReplyStream>, Status> {
        let (context, messages) = (self.clone(), call.into_inner());
        let run = |replies| run(ShownStream { context, messages, replies, modes: Modes::default() });
        Ok(Response::new(ReplyStream::run(run)))
    }
}

/// Runs a stream to its end. If it is dropped before, because the client left, it releases the reservation of a request
/// that the application did not get.
async fn run(mut stream: ShownStream) -> Result<(), Status> {
    let Some(first) = stream.next().await? else { return Ok(()) };
    stream.modes = Modes::of(first.protocol_config);
    if let Some(mode) = stream.modes.unsupported() {
        return Err(stream.context.bad_description(BadDescription::Unsupported(mode)));
    }
    let headers = match first.request {
        Some(Part::RequestHeaders(headers)) => headers,
        Some(Part::ResponseHeaders(_)) => return let_own_answer_pass(stream, first).await,
        _ => return Err(stream.context.bad_description(BadDescription::Missing("request_headers"))),
    };
    let exchange = match request::decide(&mut stream, headers, &first.attributes).await? {
        Decided::Passed(exchange) => exchange,
        Decided::Over => return Ok(()),
        Decided::AnsweredByEnvoy(answer) => return let_own_answer_pass(stream, *answer).await,
    };
    let Some((headers, attributes)) = answer_head(&mut stream).await? else { return Ok(()) };
    observe(&mut stream, exchange, headers, &attributes).await
}

/// Lets an answer go on that Envoy has made before it showed the request, or before the decision: none is awaited any more.
/// Where the application has made it, its request was forwarded undecided.
async fn let_own_answer_pass(mut stream: ShownStream, first: ProcessingRequest) -> Result<(), Status> {
    let mut shown = Some(first);
    while let Some(message) = shown {
        if let Some(part) = &message.request {
            check_own_answer(part, &message.attributes).map_err(|bad| stream.context.bad_description(bad))?;
            stream.replies.pass_on(part);
        }
        shown = stream.next().await?;
    }
    Ok(())
}

fn check_own_answer(part: &Part, attributes: &Attributes) -> Result<(), BadDescription> {
    let goes_on = match part {
        Part::ResponseHeaders(_) => own_answer(attributes)?.is_some(),
        Part::ResponseBody(_) | Part::ResponseTrailers(_) => true,
        Part::RequestHeaders(_) | Part::RequestBody(_) | Part::RequestTrailers(_) => false,
    };
    if goes_on { Ok(()) } else { Err(BadDescription::Unasked) }
}

/// Lets the rest of the request go on, until its answer begins. `None`: Envoy shows no answer.
async fn answer_head(stream: &mut ShownStream) -> Result<Option<(HttpHeaders, Attributes)>, Status> {
    while let Some(message) = stream.next().await? {
        match message.request {
            Some(Part::ResponseHeaders(headers)) => return Ok(Some((headers, message.attributes))),
            Some(part) => stream.pass_on(&part)?,
            None => {}
        }
    }
    Ok(None)
}

// The shared state of all parts of a stream.

/// A stream of messages. Envoy waits for an answer to each.
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

// Observes the answer to the request of a stream.

const CODE_DETAILS: &str = "response.code_details";

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
    let details = process::text(attributes, CODE_DETAILS)?;
    Ok(details.and_then(|details| Some((details, unanswered(details)?))))
}

fn read_head(map: &HeaderMap) -> Option<(StatusCode, Fields)> {
    let (mut status, mut fields) = (None, Fields::default());
    for (name, value) in map.headers.iter().map(description::name_and_value) {
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
    Some(description::raw(KnownName::SET_COOKIE.as_str(), cookie.as_bytes(), Write::Append))
}
