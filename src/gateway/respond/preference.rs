//! Who reads an answer of our own: a person in a browser, a gRPC library, or another program.

use http::HeaderMap;
use http::HeaderValue;
use http::header::ACCEPT;
use http::header::CONTENT_TYPE;

use super::accept;

/// What a request says of its reader. Looked at when there is something to be read: most requests never are.
#[derive(Clone, Debug)]
pub struct ReplyPreference {
    accept: Option<HeaderValue>,
    calls: Option<HeaderValue>,
}

/// How an answer is written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ReplyFormat {
    /// A page.
    Html,
    /// A problem document.
    Problem,
    /// The status of a call, of this type.
    Grpc(HeaderValue),
}

impl ReplyPreference {
    pub fn of(headers: &HeaderMap) -> Self {
        let calls = headers.get(CONTENT_TYPE).filter(|content_type| is_grpc(content_type));
        Self { accept: headers.get(ACCEPT).cloned(), calls: calls.cloned() }
    }

    pub fn reads(&self) -> ReplyFormat {
        match (&self.calls, &self.accept) {
            (Some(content_type), _) if is_web(content_type) => ReplyFormat::Grpc(GRPC_WEB),
            (Some(_), _) => ReplyFormat::Grpc(GRPC),
            (None, Some(accept)) if accept::prefers_html(accept) => ReplyFormat::Html,
            (None, _) => ReplyFormat::Problem,
        }
    }
}

/// `application/grpc`, and all that begins so: with the encoding of its messages, and from browsers.
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
