//! One stream: a request, and then its answer; or an answer of Envoy to a request that it does not show.

use envoy_types::pb::envoy::service::ext_proc::v3::HttpHeaders;
use envoy_types::pb::envoy::service::ext_proc::v3::ProcessingRequest;
use envoy_types::pb::envoy::service::ext_proc::v3::external_processor_server::ExternalProcessor;
use envoy_types::pb::envoy::service::ext_proc::v3::processing_request::Request as Part;
use tonic::Request;
use tonic::Response;
use tonic::Status;
use tonic::Streaming;

use super::attributes::Attributes;
use super::modes::Modes;
use super::reply_stream::ReplyStream;
use super::request;
use super::request::Decided;
use super::response;
use super::shown_stream::ShownStream;
use crate::fronts::envoy::call_context::CallContext;
use crate::fronts::envoy::description::BadDescription;

#[tonic::async_trait]
impl ExternalProcessor for CallContext {
    type ProcessStream = ReplyStream;

    async fn process(&self, call: Request<Streaming<ProcessingRequest>>) -> Result<Response<ReplyStream>, Status> {
        let (context, messages) = (self.clone(), call.into_inner());
        let run = |replies| run(ShownStream { context, messages, replies, modes: Modes::default() });
        Ok(Response::new(ReplyStream::run(run)))
    }
}

/// Runs a stream to its end. Dropped before, as when the client leaves, it gives back what is reserved for a request that the
/// application did not get.
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
    response::observe(&mut stream, exchange, headers, &attributes).await
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
        Part::ResponseHeaders(_) => response::own_answer(attributes)?.is_some(),
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
