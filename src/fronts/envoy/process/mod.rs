//! `ExternalProcessor/Process`: Envoy's filter `ext_proc` shows a request, and then its answer, on one stream.

mod replies;
mod request;
mod session;

use std::collections::HashMap;

use envoy_types::pb::envoy::extensions::filters::http::ext_proc::v3::ProcessingMode;
use envoy_types::pb::envoy::extensions::filters::http::ext_proc::v3::processing_mode::{BodySendMode, HeaderSendMode};
use envoy_types::pb::envoy::service::ext_proc::v3::ProtocolConfiguration;
use envoy_types::pb::google::protobuf::Struct;
use envoy_types::pb::google::protobuf::value::Kind;

use crate::fronts::envoy::description::BadDescription;
use crate::gateway::{NeededBody, Unanswered};

const VIA_UPSTREAM: &str = "via_upstream";

/// Envoy found no server for the request.
const NOT_SENT: [&str; 6] = [
    "no_healthy_upstream",
    "cluster_not_found",
    "route_not_found",
    "direct_response",
    "maintenance_mode",
    "upstream_reset_before_response_started{overflow",
];

/// No connection to a server came about.
const NOT_CONNECTED: [&str; 3] = ["{remote_connection_failure", "{local_connection_failure", "{connection_timeout"];

/// Reads `response.code_details`. `None`: the application answered.
pub(super) fn unanswered(details: &str) -> Option<Unanswered> {
    if details == VIA_UPSTREAM {
        return None;
    }
    let is_not_sent = NOT_SENT.iter().any(|known| details.starts_with(known))
        || NOT_CONNECTED.iter().any(|known| details.contains(known));
    Some(if is_not_sent { Unanswered::NotSent } else { Unanswered::MaybeSent })
}

// Which parts of a request and its answer Envoy shows.

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

    /// A mode in which Envoy expects the processor to send the body back.
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

    /// Asks for no body: the request is decided. If it `is_open`, its body may follow its head. The body of the answer
    /// is asked for when the head of the answer has arrived.
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

// Attributes that Envoy adds to its messages if its filter is configured so.

/// By the name of the filter.
pub(super) type Attributes = HashMap<String, Struct>;

/// The text of an attribute. Where several filters have it, it is one text.
pub(super) fn text<'a>(attributes: &'a Attributes, name: &'static str) -> Result<Option<&'a str>, BadDescription> {
    let mut found = None;
    for value in attributes.values().filter_map(|of_filter| of_filter.fields.get(name)) {
        let Some(Kind::StringValue(text)) = &value.kind else { return Err(BadDescription::Malformed(name)) };
        if found.is_some_and(|there| there != text) {
            return Err(BadDescription::Twice(name));
        }
        found = Some(&**text);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use envoy_types::pb::google::protobuf::Value;

    use super::*;

    #[track_caller]
    fn check(details: &str, expected: Option<Unanswered>) {
        assert_eq!(unanswered(details), expected, "{details}");
    }

    #[test]
    fn an_answer_is_the_applications_only_where_envoy_says_so() {
        check("via_upstream", None);
        check("no_healthy_upstream", Some(Unanswered::NotSent));
        let refused = "upstream_reset_before_response_started{remote_connection_failure|delayed_connect_error:_111}";
        check(refused, Some(Unanswered::NotSent));
        check("upstream_reset_before_response_started{connection_termination}", Some(Unanswered::MaybeSent));
        check("upstream_response_timeout", Some(Unanswered::MaybeSent));
        check("something_new", Some(Unanswered::MaybeSent));
    }

    #[track_caller]
    fn check_process(values: &[Kind], expected: Result<Option<&str>, BadDescription>) {
        let of_filter = |kind: &Kind| Struct { fields: [(NAME.to_owned(), Value { kind: Some(kind.clone()) })].into() };
        let filters = (0..).map(|number: usize| format!("filter {number}"));
        let mut attributes: Attributes = filters.zip(values.iter().map(of_filter)).collect();
        attributes.insert("another filter".to_owned(), Struct::default());
        assert_eq!(text(&attributes, NAME), expected);
    }

    const NAME: &str = "source.address";

    #[test]
    fn an_attribute_has_one_text_however_many_filters_have_it() {
        let text = |text: &str| Kind::StringValue(text.to_owned());
        let (one, other) = (text("127.0.0.5:1"), text("127.0.0.6:1"));
        check_process(&[], Ok(None));
        check_process(std::slice::from_ref(&one), Ok(Some("127.0.0.5:1")));
        check_process(&[one.clone(), one.clone()], Ok(Some("127.0.0.5:1")));
        check_process(&[one.clone(), other], Err(BadDescription::Twice(NAME)));
        check_process(&[one.clone(), text("")], Err(BadDescription::Twice(NAME)));
        check_process(&[one, Kind::NumberValue(1.0)], Err(BadDescription::Malformed(NAME)));
    }
}
