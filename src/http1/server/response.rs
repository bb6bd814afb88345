//! Writes the head of a response to a client, and decides the framing of its body, whatever its own fields say.

use bytes::BytesMut;
use http::HeaderName;
use http::StatusCode;
use http::Version;
use http::header;
use http_body::SizeHint;

use crate::digits::push_decimal;
use crate::head::Fields;
use crate::head::KnownName;
use crate::head::ResponseHead;
use crate::head::write_line;
use crate::http1::grammar::BodyLength;
use crate::http1::grammar::WriteBuffer;
use crate::http1::grammar::elements;
use crate::http1::grammar::list_has;

/// The parts of a request that its response depends on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RequestTraits {
    /// A HEAD request: the response has no body.
    pub is_head: bool,
    pub version: Version,
    /// The connection stays open for another request.
    pub keeps_alive: bool,
    pub accepts_trailers: bool,
}

/// What is known of the length of the body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BodySize {
    Empty,
    Known(u64),
    Unknown,
}

/// The framing of the body behind a head.
#[derive(Debug)]
pub struct ResponseFraming {
    /// `None`: no body.
    pub body: Option<BodyLength>,
    /// The connection stays open for another request.
    pub keeps_alive: bool,
    /// The announced trailers.
    pub trailers: Vec<HeaderName>,
}

impl BodySize {
    pub fn of(is_end_stream: bool, hint: &SizeHint) -> Self {
        match hint.exact() {
            _ if is_end_stream => Self::Empty,
            Some(length) => Self::Known(length),
            None => Self::Unknown,
        }
    }
}

/// Writes a head. `write_date` writes the current date.
pub fn write_head(
    head: &mut ResponseHead,
    size: BodySize,
    request: RequestTraits,
    out: &mut WriteBuffer,
    write_date: impl FnOnce(&mut Vec<u8>),
) -> ResponseFraming {
    let status = head.status;
    let is_old = request.version == Version::HTTP_10;
    let out = out.small();
    out.reserve(ROOM + head.fields.text_length());
    status_line(status, head.reason(), out);

    let may_have_length = !status.is_informational() && status != StatusCode::NO_CONTENT;
    let may_have_body = may_have_length && status != StatusCode::NOT_MODIFIED && !request.is_head;
    // The length of the body that a GET would get is written, though the body is not sent.
    let states_length_of_get = may_have_length && !may_have_body && size == BodySize::Empty;
    let may_state_length = may_have_length && (size != BodySize::Empty || states_length_of_get);
    let fields = &mut head.fields;
    let stated = settle_length(fields, may_state_length);
    fields.remove(KnownName::TRANSFER_ENCODING);
    let trailers = settle_trailers(fields, !is_old && may_have_body, request.accepts_trailers);
    let says = |option| fields.get_all(KnownName::CONNECTION).any(|value| list_has(value, option));
    let (closes, asks_keep_alive) = (says(b"close"), says(b"keep-alive"));
    fields.write(out);

    let length = match (stated, size) {
        (Some(_), BodySize::Known(known)) => BodyLength::Known(known),
        (Some(stated), BodySize::Empty | BodySize::Unknown) => BodyLength::Known(stated),
        (None, BodySize::Empty | BodySize::Known(0)) => {
            if may_have_body {
                out.extend_from_slice(b"content-length: 0\r\n");
            }
            BodyLength::Known(0)
        }
        (None, BodySize::Known(length)) => {
            if may_have_length {
                write_line(b"content-length", itoa::Buffer::new().format(length).as_bytes(), out);
            }
            BodyLength::Known(length)
        }
        (None, BodySize::Unknown) if is_old => BodyLength::UntilClose,
        (None, BodySize::Unknown) => {
            if may_have_body {
                out.extend_from_slice(b"transfer-encoding: chunked\r\n");
            }
            BodyLength::Chunked
        }
    };
    let body = (may_have_body && length != BodyLength::Known(0)).then_some(length);

    let may_stay = request.keeps_alive && body != Some(BodyLength::UntilClose);
    let is_upgrade = status == StatusCode::SWITCHING_PROTOCOLS;
    if !may_stay && !closes && !is_upgrade {
        out.extend_from_slice(b"connection: close\r\n");
    } else if is_old && may_stay && !closes && !asks_keep_alive {
        out.extend_from_slice(b"connection: keep-alive\r\n");
    }
    if !fields.has(KnownName::DATE) {
        out.extend_from_slice(b"date: ");
        write_date(out);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    ResponseFraming { body, keeps_alive: may_stay && !closes, trailers }
}

/// Leaves at most one `Content-Length`, the first that is a number, and returns it.
fn settle_length(fields: &mut Fields, may_stay: bool) -> Option<u64> {
    if !fields.has(KnownName::CONTENT_LENGTH) {
        return None;
    }
    let number = |value: &[u8]| -> Option<u64> { str::from_utf8(value).ok()?.parse().ok() };
    if !may_stay {
        fields.remove(KnownName::CONTENT_LENGTH);
        return None;
    }
    // The usual case.
    if let Some(length) = fields.single(KnownName::CONTENT_LENGTH).and_then(number) {
        return Some(length);
    }
    let stated = fields.get_all(KnownName::CONTENT_LENGTH).find_map(|value| Some((number(value)?, value.to_vec())));
    match &stated {
        Some((_, value)) => fields.insert(KnownName::CONTENT_LENGTH, value),
        None => drop(fields.remove(KnownName::CONTENT_LENGTH)),
    }
    stated.map(|(length, _)| length)
}

/// Removes `Trailer` where the client gets no trailers. Returns the trailers that the client gets.
fn settle_trailers(fields: &mut Fields, may_have_some: bool, accepts_some: bool) -> Vec<HeaderName> {
    if !may_have_some || !accepts_some {
        fields.remove(KnownName::TRAILER);
        return Vec::new();
    }
    let names = fields.get_all(KnownName::TRAILER).flat_map(elements);
    names.filter_map(|name| HeaderName::from_bytes(name).ok()).collect()
}

/// Writes the whole response to an invalid head; `fields` are those beside the framing and the date.
pub fn write_refusal(
    status: StatusCode,
    fields: &Fields,
    body: &[u8],
    out: &mut WriteBuffer,
    write_date: impl FnOnce(&mut Vec<u8>),
) {
    let out = out.small();
    status_line(status, None, out);
    fields.write(out);
    out.extend_from_slice(b"connection: close\r\ncontent-length: ");
    push_decimal(out, u64::try_from(body.len()).unwrap_or_default());
    out.extend_from_slice(b"\r\ndate: ");
    write_date(out);
    out.extend_from_slice(b"\r\n\r\n");
    out.extend_from_slice(body);
}

/// Writes an interim response.
pub fn write_interim(head: &ResponseHead, out: &mut BytesMut) {
    let mut written = Vec::with_capacity(ROOM + head.fields.text_length());
    status_line(head.status, head.reason(), &mut written);
    head.fields.write(&mut written);
    written.extend_from_slice(b"\r\n");
    out.extend_from_slice(&written);
}

/// Writes the status line. Its version is ours, whatever the client's is (RFC 9110, section 6.2).
fn status_line(status: StatusCode, reason: Option<&[u8]>, out: &mut Vec<u8>) {
    if status == StatusCode::OK && reason.is_none() {
        return out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    }
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    // The blank stands also before a reason that is empty (RFC 9112, section 4).
    out.extend_from_slice(b" ");
    let usual = status.canonical_reason().unwrap_or_default();
    out.extend_from_slice(reason.unwrap_or(usual.as_bytes()));
    out.extend_from_slice(b"\r\n");
}

/// Whether this field may be a trailer, if it was announced.
pub fn is_allowed_trailer(name: &HeaderName) -> bool {
    let may_not = [
        header::AUTHORIZATION,
        header::CACHE_CONTROL,
        header::CONTENT_ENCODING,
        header::CONTENT_LENGTH,
        header::CONTENT_RANGE,
        header::CONTENT_TYPE,
        header::HOST,
        header::MAX_FORWARDS,
        header::SET_COOKIE,
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
    ];
    !may_not.contains(name)
}

/// In bytes: the room for a head without its fields.
const ROOM: usize = 128;

#[cfg(test)]
mod tests {
    use bytes::Buf;

    use super::*;
    use crate::head::Name;

    const KEEPS: RequestTraits =
        RequestTraits { is_head: false, version: Version::HTTP_11, keeps_alive: true, accepts_trailers: true };

    fn write_epoch(out: &mut Vec<u8>) {
        out.extend_from_slice(b"Thu, 01 Jan 1970 00:00:00 GMT");
    }

    /// Checks the fields between the status line and the date, and the framing.
    #[track_caller]
    fn check(
        request: RequestTraits,
        size: BodySize,
        fields: &[(&str, &str)],
        lines: &str,
        body: Option<BodyLength>,
        keeps_alive: bool,
    ) {
        let mut head = ResponseHead::of(StatusCode::OK);
        for (name, value) in fields {
            head.fields.append(Name::of(name), value.as_bytes());
        }
        let mut out = WriteBuffer::default();
        let framing = write_head(&mut head, size, request, &mut out, write_epoch);
        let text = String::from_utf8(out.copy_to_bytes(out.remaining()).to_vec()).unwrap();
        let rest = text.strip_prefix("HTTP/1.1 200 OK\r\n").unwrap();
        let (before, _) = rest.split_once("date: ").unwrap();
        assert_eq!((before, framing.body, framing.keeps_alive), (lines, body, keeps_alive), "{fields:?}");
    }

    #[test]
    fn a_body_is_framed_by_what_is_known_of_it() {
        check(KEEPS, BodySize::Empty, &[("a", "b")], "a: b\r\ncontent-length: 0\r\n", None, true);
        check(KEEPS, BodySize::Known(5), &[], "content-length: 5\r\n", Some(BodyLength::Known(5)), true);
        check(KEEPS, BodySize::Unknown, &[], "transfer-encoding: chunked\r\n", Some(BodyLength::Chunked), true);
        let old = RequestTraits { version: Version::HTTP_10, keeps_alive: false, ..KEEPS };
        let close = "connection: close\r\n";
        check(old, BodySize::Unknown, &[], close, Some(BodyLength::UntilClose), false);
        check(
            RequestTraits { keeps_alive: true, ..old },
            BodySize::Unknown,
            &[],
            close,
            Some(BodyLength::UntilClose),
            false,
        );
        let known = Some(BodyLength::Known(5));
        check(old, BodySize::Known(5), &[], &format!("content-length: 5\r\n{close}"), known, false);
    }

    #[test]
    fn a_response_without_a_body_has_no_length_unless_a_get_would_get_a_body() {
        let states_length = |status: u16, is_head: bool, size| {
            let mut head = ResponseHead::of(StatusCode::from_u16(status).unwrap());
            head.fields.append(KnownName::CONTENT_LENGTH, b"5");
            let mut out = WriteBuffer::default();
            let framing = write_head(&mut head, size, RequestTraits { is_head, ..KEEPS }, &mut out, write_epoch);
            let text = String::from_utf8(out.copy_to_bytes(out.remaining()).to_vec()).unwrap();
            assert!(framing.body.is_none() && framing.keeps_alive && !text.contains("transfer-encoding"), "{text}");
            text.contains("content-length: 5\r\n")
        };
        for (status, of_get, of_head) in
            [(101, false, false), (103, false, false), (204, false, false), (304, true, true)]
        {
            assert_eq!(states_length(status, false, BodySize::Empty), of_get, "{status}");
            assert_eq!(states_length(status, true, BodySize::Empty), of_head, "{status}");
        }
        assert!(states_length(200, true, BodySize::Empty));
        assert!(!states_length(204, true, BodySize::Known(5)));
    }

    #[test]
    fn the_body_has_one_length_whatever_the_fields_say() {
        let stated = [("content-length", "5"), ("content-length", "5"), ("transfer-encoding", "gzip")];
        check(KEEPS, BodySize::Known(5), &stated, "content-length: 5\r\n", Some(BodyLength::Known(5)), true);
        check(KEEPS, BodySize::Unknown, &stated, "content-length: 5\r\n", Some(BodyLength::Known(5)), true);
        check(KEEPS, BodySize::Empty, &stated, "content-length: 0\r\n", None, true);
        let head = RequestTraits { is_head: true, ..KEEPS };
        check(head, BodySize::Empty, &stated, "content-length: 5\r\n", None, true);
        check(head, BodySize::Empty, &[], "", None, true);
        check(head, BodySize::Unknown, &[], "", None, true);
        check(head, BodySize::Known(7), &[], "content-length: 7\r\n", None, true);
    }

    #[test]
    fn the_client_learns_whether_the_connection_goes_on() {
        let length = "content-length: 0\r\n";
        let ends = RequestTraits { keeps_alive: false, ..KEEPS };
        let own = [("connection", "close")];
        check(ends, BodySize::Empty, &[], &format!("{length}connection: close\r\n"), None, false);
        check(ends, BodySize::Empty, &own, &format!("connection: close\r\n{length}"), None, false);
        check(KEEPS, BodySize::Empty, &own, &format!("connection: close\r\n{length}"), None, false);
        let old = RequestTraits { version: Version::HTTP_10, ..KEEPS };
        check(old, BodySize::Empty, &[], &format!("{length}connection: keep-alive\r\n"), None, true);
        check(old, BodySize::Empty, &own, &format!("connection: close\r\n{length}"), None, false);
        let ends = RequestTraits { keeps_alive: false, ..old };
        check(ends, BodySize::Empty, &[], &format!("{length}connection: close\r\n"), None, false);
    }

    #[test]
    fn a_status_without_usual_words_has_none() {
        let mut line = Vec::new();
        status_line(StatusCode::from_u16(799).unwrap(), None, &mut line);
        assert_eq!(line, b"HTTP/1.1 799 \r\n");
    }
}
