//! The messages that Envoy gets.

use envoy_types::pb::envoy::extensions::filters::http::ext_proc::v3::ProcessingMode;
use envoy_types::pb::envoy::service::ext_proc::v3::BodyResponse;
use envoy_types::pb::envoy::service::ext_proc::v3::CommonResponse;
use envoy_types::pb::envoy::service::ext_proc::v3::GrpcStatus;
use envoy_types::pb::envoy::service::ext_proc::v3::HeaderMutation;
use envoy_types::pb::envoy::service::ext_proc::v3::HeadersResponse;
use envoy_types::pb::envoy::service::ext_proc::v3::ImmediateResponse;
use envoy_types::pb::envoy::service::ext_proc::v3::ProcessingResponse;
use envoy_types::pb::envoy::service::ext_proc::v3::TrailersResponse;
use envoy_types::pb::envoy::service::ext_proc::v3::processing_request::Request as Part;
use envoy_types::pb::envoy::service::ext_proc::v3::processing_response::Response as Answer;
use envoy_types::pb::envoy::r#type::v3::HttpStatus;
use tokio::sync::mpsc::UnboundedSender;

use crate::fronts::envoy::header_values;
use crate::fronts::envoy::header_values::Write;
use crate::fronts::envoy::judge::Denied;
use crate::fronts::envoy::request_changes::RequestChanges;
use crate::head::Fields;
use crate::head::KnownName;

/// Answers Envoy, which waits for an answer to each part that it shows.
#[derive(Debug)]
pub(super) struct Replies(UnboundedSender<ProcessingResponse>);

/// A part of a request or of its answer in which something may be changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ChangeablePart {
    RequestHeaders,
    RequestBody,
    ResponseHeaders,
    ResponseBody,
}

impl Replies {
    pub(super) fn new(sender: UnboundedSender<ProcessingResponse>) -> Self {
        Self(sender)
    }

    /// Lets a part go on.
    pub(super) fn pass_on(&self, part: &Part) {
        match part {
            Part::RequestHeaders(_) => self.go_on(ChangeablePart::RequestHeaders),
            Part::RequestBody(_) => self.go_on(ChangeablePart::RequestBody),
            Part::RequestTrailers(_) => self.send(Answer::RequestTrailers(TrailersResponse::default()), None),
            Part::ResponseHeaders(_) => self.go_on(ChangeablePart::ResponseHeaders),
            Part::ResponseBody(_) => self.go_on(ChangeablePart::ResponseBody),
            Part::ResponseTrailers(_) => self.send(Answer::ResponseTrailers(TrailersResponse::default()), None),
        }
    }

    pub(super) fn go_on(&self, part: ChangeablePart) {
        self.change(part, None, None);
    }

    /// Lets a part go on, and changes header fields and modes.
    pub(super) fn change(
        &self,
        part: ChangeablePart,
        header_mutation: Option<HeaderMutation>,
        mode_override: Option<ProcessingMode>,
    ) {
        let response = Some(CommonResponse { header_mutation, ..CommonResponse::default() });
        let answer = match part {
            ChangeablePart::RequestHeaders => Answer::RequestHeaders(HeadersResponse { response }),
            ChangeablePart::RequestBody => Answer::RequestBody(BodyResponse { response }),
            ChangeablePart::ResponseHeaders => Answer::ResponseHeaders(HeadersResponse { response }),
            ChangeablePart::ResponseBody => Answer::ResponseBody(BodyResponse { response }),
        };
        self.send(answer, mode_override);
    }

    /// The client gets this answer, and nothing more of the request is shown.
    pub(super) fn deny(&self, denied: Denied) {
        let Denied { status, fields, body } = denied;
        let grpc_status = fields.get(KnownName::GRPC_STATUS).and_then(|code| str::from_utf8(code).ok()?.parse().ok());
        let set_headers = header_values::of_answer(&fields, header_values::raw);
        let immediate = ImmediateResponse {
            status: Some(HttpStatus { code: i32::from(status.as_u16()) }),
            headers: Some(HeaderMutation { set_headers, remove_headers: Vec::new() }),
            body: body.into(),
            grpc_status: grpc_status.map(|status| GrpcStatus { status }),
            details: "denied_by_portcullis".to_owned(),
        };
        self.send(Answer::ImmediateResponse(immediate), None);
    }

    /// Where the stream is gone, nothing waits for an answer.
    fn send(&self, answer: Answer, mode_override: Option<ProcessingMode>) {
        let reply = ProcessingResponse { response: Some(answer), mode_override, ..ProcessingResponse::default() };
        let _ = self.0.send(reply);
    }
}

/// Changes the request that the application gets.
pub(super) fn of_request(changes: &RequestChanges) -> HeaderMutation {
    let set = changes.set.iter().map(|(name, value)| header_values::raw(name.as_str(), value, Write::Replace));
    HeaderMutation {
        set_headers: set.collect(),
        remove_headers: changes.removed.iter().map(|name| name.as_str().to_owned()).collect(),
    }
}

/// Adds fields to the answer that the client gets.
pub(super) fn of_answer(fields: &Fields) -> HeaderMutation {
    let set = fields.iter().map(|field| {
        header_values::raw(field.name.as_str(), field.value, header_values::beside_the_answer(field.name))
    });
    HeaderMutation { set_headers: set.collect(), remove_headers: Vec::new() }
}
