//! Parses the head of a client's request, strictly, and the framing of its body.

use http::Method;
use http::StatusCode;
use http::Version;
use memchr::memchr;

use crate::head::Fields;
use crate::head::InvalidTarget;
use crate::head::KnownName;
use crate::head::RequestHead;
use crate::head::Span;
use crate::head::Target;
use crate::http1::grammar::BodyLength;
use crate::http1::grammar::InvalidLines;
use crate::http1::grammar::LINE_END;
use crate::http1::grammar::line_end;
use crate::http1::grammar::list_has;
use crate::http1::grammar::note_lines;

/// The limits of a head.
#[derive(Clone, Copy, Debug)]
pub struct HeadLimits {
    pub bytes: usize,
    pub fields: usize,
}

/// A head, and what it says of what follows it.
#[derive(Debug)]
pub struct ParsedRequest {
    pub head: RequestHead,
    pub framing: RequestFraming,
    /// In bytes: the length of the head.
    pub length: usize,
}

/// What the fields say of what follows the head.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RequestFraming {
    pub body: BodyLength,
    /// The connection stays open for another request.
    pub keeps_alive: bool,
    pub options: RequestOptions,
}

/// Other fields that decide how the request is answered.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RequestOptions {
    /// The client asks for another protocol.
    pub upgrade: bool,
    /// The client accepts trailers behind the response.
    pub trailers: bool,
}

/// Parses the head at the front of `read`. `None`: the head is not complete. The error is the status that answers an invalid
/// head. Names are checked line by line, and all other bytes at once when the head is complete, so that no line can end in anything
/// but CR LF.
pub fn parse(read: &[u8], limits: HeadLimits) -> Result<Option<ParsedRequest>, StatusCode> {
    let mut fields = Fields::on(read);
    let (mut at, mut empty_lines) = (0, 0);
    while read[at..].starts_with(LINE_END) {
        at += LINE_END.len();
        empty_lines += 1;
    }
    let Some(end) = line_end(read, at).map_err(status_of)? else { return check_method(&read[at..]).map(|()| None) };
    let (method, target, version) = request_line(&read[at..end], at)?;
    at = end + LINE_END.len();
    let Some(at) = note_lines(&mut fields, read, at, limits.fields).map_err(status_of)? else { return Ok(None) };
    if at > limits.bytes {
        return Err(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    }
    fields.truncate_text(at);
    // The request line and the last one are no fields.
    if !fields.is_lines(at, empty_lines + fields.len() + 2) {
        return Err(StatusCode::BAD_REQUEST);
    }
    let target = Target::parse(&mut fields, target).map_err(|invalid| match invalid {
        InvalidTarget::Malformed => StatusCode::BAD_REQUEST,
        InvalidTarget::TooLong => StatusCode::URI_TOO_LONG,
    })?;
    let framing = RequestFraming::settle(&mut fields, version)?;
    let head = RequestHead::new(method, target, version, fields);
    Ok(Some(ParsedRequest { head, framing, length: at }))
}

fn status_of(invalid: InvalidLines) -> StatusCode {
    match invalid {
        InvalidLines::Malformed => StatusCode::BAD_REQUEST,
        InvalidLines::TooMany => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
    }
}

/// Checks the beginning of a request line that is not complete.
fn check_method(line: &[u8]) -> Result<(), StatusCode> {
    let word = line.split(|byte| matches!(byte, b' ' | b'\r')).next().unwrap_or_default();
    let is_valid = matches!(line, b"" | b"\r") || Method::from_bytes(word).is_ok();
    if is_valid { Ok(()) } else { Err(StatusCode::BAD_REQUEST) }
}

/// The method, where the target stands, and the version. The line begins at `start`.
fn request_line(line: &[u8], start: usize) -> Result<(Method, Span, Version), StatusCode> {
    let (line, version) = match line.strip_suffix(b" HTTP/1.1") {
        Some(line) => (line, Version::HTTP_11),
        None => other_version(line)?,
    };
    let space = memchr(b' ', line).ok_or(StatusCode::BAD_REQUEST)?;
    let method = Method::from_bytes(&line[..space]).map_err(|_| StatusCode::BAD_REQUEST)?;
    if line.len() - space > Target::MAX_LENGTH {
        return Err(StatusCode::URI_TOO_LONG);
    }
    Ok((method, Span::new(start + space + 1, start + line.len()), version))
}

/// The line without its version, where that is not 1.1. A later version of HTTP/1 can be read as 1.1 (RFC 9110, section 6.2).
fn other_version(line: &[u8]) -> Result<(&[u8], Version), StatusCode> {
    let (line, version) = line.split_last_chunk::<9>().ok_or(StatusCode::BAD_REQUEST)?;
    match version {
        b" HTTP/1.0" => Ok((line, Version::HTTP_10)),
        [b' ', b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9'] => Ok((line, Version::HTTP_11)),
        [b' ', b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'] => {
            Err(StatusCode::HTTP_VERSION_NOT_SUPPORTED)
        }
        _ => Err(StatusCode::BAD_REQUEST),
    }
}

impl RequestFraming {
    /// Reads the framing. Afterwards there is at most one `Content-Length`, and none beside chunks.
    fn settle(fields: &mut Fields, version: Version) -> Result<Self, StatusCode> {
        let is_persistent = version == Version::HTTP_11;
        let has = |name, element| fields.get_all(name).any(|value| list_has(value, element));
        let asks_keep_alive = is_persistent || has(KnownName::CONNECTION, b"keep-alive");
        let mut framing = Self {
            body: body_length(fields, is_persistent)?,
            keeps_alive: asks_keep_alive && !has(KnownName::CONNECTION, b"close"),
            options: RequestOptions {
                upgrade: is_persistent && fields.has(KnownName::UPGRADE),
                trailers: has(KnownName::TE, b"trailers"),
            },
        };
        if framing.body == BodyLength::Chunked && fields.remove(KnownName::CONTENT_LENGTH) {
            // A proxy in front may have used the length: the bytes behind the body are not trusted.
            framing.keeps_alive = false;
        } else {
            fields.remove_repeated(KnownName::CONTENT_LENGTH);
        }
        Ok(framing)
    }
}

fn body_length(fields: &Fields, allows_chunked: bool) -> Result<BodyLength, StatusCode> {
    // The last coding frames the body.
    if let Some(encoding) = fields.get_all(KnownName::TRANSFER_ENCODING).next_back() {
        let last = encoding.rsplit(|byte| *byte == b',').next().unwrap_or_default();
        let is_chunked = last.trim_ascii().eq_ignore_ascii_case(b"chunked");
        return if is_chunked && allows_chunked { Ok(BodyLength::Chunked) } else { Err(StatusCode::BAD_REQUEST) };
    }
    let mut lengths = fields.get_all(KnownName::CONTENT_LENGTH).map(number);
    let Some(first) = lengths.next() else { return Ok(BodyLength::Known(0)) };
    match first {
        Some(length) if length > MAX_LENGTH => Err(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE),
        Some(length) if lengths.all(|other| other == first) => Ok(BodyLength::Known(length)),
        _ => Err(StatusCode::BAD_REQUEST),
    }
}

/// The value as a number, if it is digits alone.
fn number(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    if is_number { str::from_utf8(digits).ok()?.parse().ok() } else { None }
}

/// A longer body cannot be meant.
const MAX_LENGTH: u64 = u64::MAX - 2;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;

#[cfg(test)]
mod tests;
