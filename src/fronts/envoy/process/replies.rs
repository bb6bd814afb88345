//! The messages that Envoy gets.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use envoy_types::pb::envoy::extensions::filters::http::ext_proc::v3::ProcessingMode;
use envoy_types::pb::envoy::service::ext_proc::v3::processing_request::Request as Part;
use envoy_types::pb::envoy::service::ext_proc::v3::processing_response::Response as Answer;
use envoy_types::pb::envoy::service::ext_proc::v3::{
    BodyResponse, CommonResponse, GrpcStatus, HeaderMutation, HeadersResponse, ImmediateResponse, ProcessingResponse,
    TrailersResponse,
};
use envoy_types::pb::envoy::r#type::v3::HttpStatus;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tonic::Status;
use tonic::codegen::tokio_stream::Stream;

use crate::fronts::envoy::check::RequestChanges;
use crate::fronts::envoy::description;
use crate::fronts::envoy::description::Write;
use crate::fronts::envoy::service::Denied;
use crate::wire::head::{Fields, KnownName};

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
        let set_headers = description::of_answer(&fields, description::raw);
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
    let set = changes.set.iter().map(|(name, value)| description::raw(name.as_str(), value, Write::Replace));
    HeaderMutation {
        set_headers: set.collect(),
        remove_headers: changes.removed.iter().map(|name| name.as_str().to_owned()).collect(),
    }
}

/// Adds fields to the answer that the client gets.
pub(super) fn of_answer(fields: &Fields) -> HeaderMutation {
    let set = fields
        .iter()
        .map(|field| description::raw(field.name.as_str(), field.value, description::answer_field_write(field.name)));
    HeaderMutation { set_headers: set.collect(), remove_headers: Vec::new() }
}

// The replies to Envoy on a stream, while its session runs.

/// The replies of a session, then its status. The session runs only while this is polled and all replies are taken, so that an
/// asker that reads nothing is read no further. Dropped, as when the asker leaves, it drops the session.
pub(in crate::fronts::envoy) struct ReplyStream {
    replies: UnboundedReceiver<ProcessingResponse>,
    session: Session,
}

enum Session {
    Running(Pin<Box<dyn Future<Output = Result<(), Status>> + Send>>),
    Failed(Status),
    Over,
}

impl ReplyStream {
    pub(super) fn run<F>(session: impl FnOnce(Replies) -> F) -> Self
    where
        F: Future<Output = Result<(), Status>> + Send + 'static,
    {
        let (sender, replies) = unbounded_channel();
        Self { replies, session: Session::Running(Box::pin(session(Replies::new(sender)))) }
    }
}

impl Stream for ReplyStream {
    type Item = Result<ProcessingResponse, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Ok(reply) = this.replies.try_recv() {
                return Poll::Ready(Some(Ok(reply)));
            }
            match &mut this.session {
                Session::Running(session) => match session.as_mut().poll(cx) {
                    Poll::Ready(Ok(())) => this.session = Session::Over,
                    Poll::Ready(Err(status)) => this.session = Session::Failed(status),
                    Poll::Pending if this.replies.is_empty() => return Poll::Pending,
                    Poll::Pending => {}
                },
                Session::Failed(status) => {
                    let status = status.clone();
                    this.session = Session::Over;
                    return Poll::Ready(Some(Err(status)));
                }
                Session::Over => return Poll::Ready(None),
            }
        }
    }
}

impl fmt::Debug for ReplyStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyStream").finish_non_exhaustive()
    }
}
