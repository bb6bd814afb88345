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
        Self { accept: accept_list(headers), grpc: grpc.cloned() }
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

/// The whole list of `Accept`. Several lines are one list (RFC 9110, section 5.3). One line, as nearly all clients send,
/// is not copied.
fn accept_list(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut lines = headers.get_all(ACCEPT).iter();
    let (first, second) = (lines.next()?, lines.next());
    if second.is_none() {
        return Some(first.clone());
    }
    let lines: Vec<_> = [first].into_iter().chain(second).chain(lines).map(HeaderValue::as_bytes).collect();
    HeaderValue::from_bytes(&lines.join(&b","[..])).ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(accept: &[&'static str], expected: &ReplyFormat) {
        let lines = accept.iter().map(|line| (ACCEPT, HeaderValue::from_static(line)));
        let format = ReplyPreference::of(&lines.collect()).format();
        assert_eq!(format, *expected, "{accept:?}");
    }

    #[test]
    fn all_lines_of_accept_are_one_list() {
        check(&[], &ReplyFormat::Problem);
        check(&["text/html"], &ReplyFormat::Html);
        check(&["text/html;q=0.8", "application/json;q=0.9"], &ReplyFormat::Problem);
        check(&["application/json;q=0.5", "text/html"], &ReplyFormat::Html);
        check(&["image/png", "image/avif", "text/html"], &ReplyFormat::Html);
    }
}
