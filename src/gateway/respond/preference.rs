//! Chooses the format of the gateway's own answers: for a browser, a gRPC library, or another program.

use std::borrow::Cow;

use super::accept;
use super::accept::PreferredFormat;
use crate::head::Fields;
use crate::head::KnownName;

/// The format of an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReplyFormat {
    /// A page.
    Html,
    /// A problem document.
    Problem,
    /// A gRPC status with this `Content-Type`.
    Grpc(&'static str),
}

/// The format that a request with these fields asks for.
pub fn reply_format(fields: &Fields) -> ReplyFormat {
    if let Some(content_type) = fields.get(KnownName::CONTENT_TYPE).filter(|content_type| is_grpc(content_type)) {
        return ReplyFormat::Grpc(if is_web(content_type) { GRPC_WEB } else { GRPC });
    }
    let Some(accept) = accept_list(fields) else { return ReplyFormat::Problem };
    match accept::preferred_format(&accept) {
        PreferredFormat::Html => ReplyFormat::Html,
        PreferredFormat::Problem => ReplyFormat::Problem,
    }
}

/// The whole list of `Accept`. Several lines are one list (RFC 9110, section 5.3). One line, as nearly all clients send,
/// is not copied.
fn accept_list(fields: &Fields) -> Option<Cow<'_, [u8]>> {
    let mut lines = fields.get_all(KnownName::ACCEPT);
    let (first, second) = (lines.next()?, lines.next());
    if second.is_none() {
        return Some(Cow::Borrowed(first));
    }
    let lines: Vec<_> = [first].into_iter().chain(second).chain(lines).collect();
    Some(Cow::Owned(lines.join(&b","[..])))
}

/// `application/grpc` and all types that begin with it: with the encoding of the messages, and gRPC-Web.
fn is_grpc(content_type: &[u8]) -> bool {
    starts_with(content_type, "application/grpc")
}

fn is_web(content_type: &[u8]) -> bool {
    starts_with(content_type, "application/grpc-web")
}

fn starts_with(value: &[u8], start: &str) -> bool {
    value.get(..start.len()).is_some_and(|begins| begins.eq_ignore_ascii_case(start.as_bytes()))
}

const GRPC: &str = "application/grpc";
const GRPC_WEB: &str = "application/grpc-web";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(accept: &[&str], expected: ReplyFormat) {
        let fields: Fields = accept.iter().map(|line| (KnownName::ACCEPT, *line)).collect();
        assert_eq!(reply_format(&fields), expected, "{accept:?}");
    }

    #[test]
    fn all_lines_of_accept_are_one_list() {
        check(&[], ReplyFormat::Problem);
        check(&["text/html"], ReplyFormat::Html);
        check(&["text/html;q=0.8", "application/json;q=0.9"], ReplyFormat::Problem);
        check(&["application/json;q=0.5", "text/html"], ReplyFormat::Html);
        check(&["image/png", "image/avif", "text/html"], ReplyFormat::Html);
    }
}
