//! Reads a head that is written as RFC 9112 says, which nearly all are.

use http::StatusCode;
use http::Version;

use super::lines::HeadLines;
use super::repair::Repairs;
use crate::head::Fields;
use crate::head::Span;
use crate::http1::grammar::line_end;
use crate::http1::grammar::note_lines;

/// The head at the front of `received`. `None`: it is not whole, or it is one for [`tolerant`](super::tolerant).
pub(super) fn read(received: &[u8], most_fields: usize) -> Option<HeadLines> {
    let end = line_end(received, 0).ok()??;
    let (version, code, reason) = status_line(&received[..end])?;
    let status = StatusCode::from_bytes(code).ok()?;
    let mut fields = Fields::on(received);
    let length = note_lines(&mut fields, received, end + 2, most_fields).ok()??;
    fields.truncate_text(length);
    // The status line and the last one are no fields.
    if !fields.is_lines(length, fields.len() + 2) {
        return None;
    }
    let is_own = status.canonical_reason().is_none_or(|usual| usual.as_bytes() != reason);
    let reason = is_own.then(|| Span::new(end - reason.len(), end));
    Some(HeadLines { status, version, reason, fields, repairs: Repairs::default(), length })
}

/// The version, the status code and the reason phrase.
fn status_line(line: &[u8]) -> Option<(Version, &[u8], &[u8])> {
    let (version, rest) = match line.strip_prefix(b"HTTP/1.1 ") {
        Some(rest) => (Version::HTTP_11, rest),
        // A later version of HTTP/1 can be read as 1.1 (RFC 9110, section 6.2).
        None => match line.strip_prefix(b"HTTP/1.")? {
            [b'0', b' ', rest @ ..] => (Version::HTTP_10, rest),
            [b'2'..=b'9', b' ', rest @ ..] => (Version::HTTP_11, rest),
            _ => return None,
        },
    };
    let (code, rest) = rest.split_first_chunk::<3>()?;
    let reason = rest.strip_prefix(b" ")?;
    reason.is_ascii().then_some((version, code, reason))
}
