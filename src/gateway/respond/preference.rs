//! Chooses the format of the gateway's own answers: for a browser, a gRPC library, or another program.

use http::HeaderMap;
use http::HeaderValue;
use http::header::ACCEPT;
use http::header::CONTENT_TYPE;

use super::accept;
use super::accept::PreferredFormat;

/// The headers that decide the format. They are read only when the gateway answers itself, which is seldom.
#[derive(Clone, Debug)]
pub struct ReplyPreference {
    accept: Option<HeaderValue>,
    grpc: Option<HeaderValue>,
}

/// The format of an answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ReplyFormat {
    /// A page.
    Html,
    /// A problem document.
    Problem,
    /// A gRPC status with this `Content-Type`.
    Grpc(HeaderValue),
}

impl ReplyPreference {
    pub fn of(headers: &HeaderMap) -> Self {
        let grpc = headers.get(CONTENT_TYPE).filter(|content_type| is_grpc(content_type));
        Self { accept: headers.get(ACCEPT).cloned(), grpc: grpc.cloned() }
    }

    pub fn format(&self) -> ReplyFormat {
        match (&self.grpc, &self.accept) {
            (Some(content_type), _) if is_web(content_type) => ReplyFormat::Grpc(GRPC_WEB),
            (Some(_), _) => ReplyFormat::Grpc(GRPC),
            (None, Some(accept)) => match accept::preferred_format(accept) {
                PreferredFormat::Html => ReplyFormat::Html,
                PreferredFormat::Problem => ReplyFormat::Problem,
            },
            (None, None) => ReplyFormat::Problem,
        }
    }
}

/// `application/grpc` and all types that begin with it: with the encoding of the messages, and gRPC-Web.
fn is_grpc(content_type: &HeaderValue) -> bool {
    starts_with(content_type, "application/grpc")
}

fn is_web(content_type: &HeaderValue) -> bool {
    starts_with(content_type, "application/grpc-web")
}

fn starts_with(value: &HeaderValue, start: &str) -> bool {
    value.as_bytes().get(..start.len()).is_some_and(|begins| begins.eq_ignore_ascii_case(start.as_bytes()))
}

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const GRPC_WEB: HeaderValue = HeaderValue::from_static("application/grpc-web");
