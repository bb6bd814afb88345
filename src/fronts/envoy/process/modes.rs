//! Which parts of a request and its answer Envoy shows.

use envoy_types::pb::envoy::extensions::filters::http::ext_proc::v3::ProcessingMode;
use envoy_types::pb::envoy::extensions::filters::http::ext_proc::v3::processing_mode::BodySendMode;
use envoy_types::pb::envoy::extensions::filters::http::ext_proc::v3::processing_mode::HeaderSendMode;
use envoy_types::pb::envoy::service::ext_proc::v3::ProtocolConfiguration;

use crate::gateway::NeededBody;

/// How Envoy sends both bodies. `None`: it does not say.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Modes {
    pub(super) request_body: Option<BodySendMode>,
    pub(super) response_body: Option<BodySendMode>,
}

impl Modes {
    pub(super) fn of(configured: Option<ProtocolConfiguration>) -> Self {
        Self {
            request_body: configured.map(|modes| modes.request_body_mode()),
            response_body: configured.map(|modes| modes.response_body_mode()),
        }
    }

    /// A mode in which Envoy wants the body back from whom it shows it.
    pub(super) fn unsupported(self) -> Option<&'static str> {
        let is_unsupported = |mode| matches!(mode, Some(BodySendMode::FullDuplexStreamed | BodySendMode::Grpc));
        match self {
            Self { request_body, .. } if is_unsupported(request_body) => Some("request_body_mode"),
            Self { response_body, .. } if is_unsupported(response_body) => Some("response_body_mode"),
            _ => None,
        }
    }

    /// Whether the body of the request comes in one message, which holds its start if that is all that Envoy buffers.
    pub(super) fn sends_one_message(self) -> bool {
        matches!(self.request_body, Some(BodySendMode::Buffered | BodySendMode::BufferedPartial))
    }

    /// Asks for the start of the body of a request in one message, as far as Envoy does not send it so: in others it would
    /// forward the head before the decision.
    pub(super) fn ask_for_start_of_body(&mut self) -> Option<ProcessingMode> {
        if self.sends_one_message() {
            return None;
        }
        let response_body = self.response_body.unwrap_or(BodySendMode::None);
        Some(self.ask_for(BodySendMode::BufferedPartial, response_body))
    }

    /// Asks for no body of a request that is decided, and which may go on behind its head if it `is_open`. That of its answer is asked for when its head is there.
    pub(super) fn ask_for_no_body(&mut self, is_open: bool) -> Option<ProcessingMode> {
        let shows_one = |mode: Option<BodySendMode>| mode.is_some_and(|mode| mode != BodySendMode::None);
        let is_needed = is_open && shows_one(self.request_body) || shows_one(self.response_body);
        is_needed.then(|| self.ask_for(BodySendMode::None, BodySendMode::None))
    }

    /// Asks for the body of an answer as far as it is needed.
    pub(super) fn ask_for_answer(&mut self, needed: NeededBody) -> Option<ProcessingMode> {
        let wanted = match needed {
            NeededBody::Nothing => BodySendMode::None,
            NeededBody::Stream => BodySendMode::Streamed,
            NeededBody::BeforeHead => BodySendMode::BufferedPartial,
        };
        let is_needed = self.response_body.is_some_and(|mode| mode != wanted);
        is_needed.then(|| self.ask_for(BodySendMode::None, wanted))
    }

    fn ask_for(&mut self, request_body: BodySendMode, response_body: BodySendMode) -> ProcessingMode {
        *self = Self { request_body: Some(request_body), response_body: Some(response_body) };
        ProcessingMode {
            request_header_mode: HeaderSendMode::Send.into(),
            response_header_mode: HeaderSendMode::Send.into(),
            request_body_mode: request_body.into(),
            response_body_mode: response_body.into(),
            ..ProcessingMode::default()
        }
    }
}
