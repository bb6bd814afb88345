//! The server's side of HTTP/1.1: heads of requests are read, heads of responses are written.

use bytes::BytesMut;
use http::{HeaderName, Method, StatusCode, Version, header};
use http_body::SizeHint;
use memchr::memchr;

use crate::wire::head::{Fields, InvalidTarget, KnownName, RequestHead, ResponseHead, Span, Target, write_line};
use crate::wire::http1::grammar::{
    BodyLength, InvalidLines, LINE_END, Lines, WriteBuffer, elements, list_has, note_lines,
};
use crate::words::digits::push_decimal;

// Parses the head of a client's request, strictly, and the framing of its body.

/// A longer body cannot be meant.
const MAX_LENGTH: u64 = u64::MAX - 2;

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

/// The framing of the body, as the fields declare it.
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
/// head.
pub fn parse(read: &[u8], limits: HeadLimits) -> Result<Option<ParsedRequest>, StatusCode> {
    let mut lines = Lines::of(read);
    let mut at = 0;
    let end = loop {
        match lines.next_end().map_err(status_of)? {
            None => return check_method(&read[at..]).map(|()| None),
            // An empty line before a head means nothing (RFC 9112, section 2.2).
            Some(end) if end == at => at += LINE_END.len(),
            Some(end) => break end,
        }
    };
    let (method, target, version) = request_line(&read[at..end], at)?;
    at = end + LINE_END.len();
    let mut fields = Fields::on(read);
    let Some(at) = note_lines(&mut fields, &mut lines, at, limits.fields).map_err(status_of)? else { return Ok(None) };
    if at > limits.bytes {
        return Err(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    }
    fields.truncate_text(at);
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

// Writes the head of a response to a client, and decides the framing of its body; its own framing fields are ignored.

/// In bytes: the room for a head without its fields.
const ROOM: usize = 128;

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

/// The known length of the body.
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

/// Writes the whole response to an invalid head; framing and date are added to `fields`.
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

/// Writes the status line, always with the gateway's own version (RFC 9110, section 6.2).
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

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz {
    //! The fuzz target of this parser.

    use http::Uri;

    use super::{HeadLimits, ParsedRequest, parse};
    use crate::wire::head::RequestHead;
    use crate::wire::http1::grammar::HeadScanner;
    use crate::words::corpus;

    /// A head is read once it is whole and never before, does not depend on what follows it, keeps its bounds, and ends
    /// where a scan for its end says.
    pub fn check(bytes: &[u8]) {
        let Ok(Some(ParsedRequest { head, length, .. })) = parse(bytes, LIMITS) else { return };
        assert!(length <= bytes.len().min(LIMITS.bytes) && head.fields.len() <= LIMITS.fields);
        let again = parse(&bytes[..length], LIMITS).expect("it was a head").expect("it was whole");
        let whole = |head: &RequestHead| format!("{head:?} {:?}", head.fields.text());
        assert_eq!((whole(&again.head), again.length), (whole(&head), length), "it depends on what follows it");
        for shorter in corpus::places(length) {
            let outcome = parse(&bytes[..shorter], LIMITS);
            assert!(matches!(outcome, Ok(None)), "{outcome:?} after {shorter} of {length} bytes");
        }
        check_with_oracle(&bytes[..length], &head);
        let found = corpus::same_for_every_split(bytes, |reads| {
            let (mut scanner, mut read) = (HeadScanner::default(), Vec::new());
            reads.iter().find_map(|bytes| {
                read.extend_from_slice(bytes);
                scanner.find_end(&read)
            })
        });
        assert_eq!(found, Some(length), "the scan found another end");
    }

    /// httparse and http read the same from a head that is accepted.
    fn check_with_oracle(whole: &[u8], head: &RequestHead) {
        let line = whole.split(|byte| *byte == b'\r').find(|line| line.len() > 1).unwrap_or_default();
        if !line.ends_with(b"HTTP/1.0") && !line.ends_with(b"HTTP/1.1") {
            // The library knows no other version.
            return;
        }
        let mut slots = [httparse::EMPTY_HEADER; 32];
        let mut oracle = httparse::Request::new(&mut slots);
        let parsed = oracle.parse(whole).expect("httparse reads it");
        assert_eq!(parsed, httparse::Status::Complete(whole.len()));
        assert_eq!(oracle.method, Some(head.method.as_str()));
        // The library refuses some bytes that are forwarded as they came.
        let escaped = |text: &str| text.replace('"', "%22").replace('<', "%3C").replace('>', "%3E").replace('`', "%60");
        let target: Uri = escaped(oracle.path.expect("a target")).parse().expect("http reads it");
        assert_eq!(target.path(), escaped(head.path()));
        assert_eq!(target.query().map(str::to_owned), head.query().map(escaped));
        let host = |authority: &str| authority.rsplit('@').next().unwrap_or_default().to_owned();
        assert_eq!(target.authority().map(|authority| host(authority.as_str())), head.authority().map(str::to_owned));
        let is_length = |name: &str| name.eq_ignore_ascii_case("content-length");
        let sent = oracle.headers.iter().filter(|field| !is_length(field.name));
        let sent: Vec<_> = sent.map(|field| (field.name.to_ascii_lowercase(), field.value)).collect();
        // Equal lengths become one, and none is left beside chunks.
        let read = head.fields.iter().filter(|field| !is_length(field.name.as_str()));
        let read: Vec<_> = read.map(|field| (field.name.as_str().to_owned(), field.value)).collect();
        assert_eq!(read, sent);
        let mut written = Vec::new();
        head.fields.write(&mut written);
        written.extend_from_slice(b"\r\n");
        let mut slots = [httparse::EMPTY_HEADER; 32];
        let again = httparse::parse_headers(&written, &mut slots).expect("what is written can be read").unwrap().1;
        let again: Vec<_> = again.iter().filter(|field| !is_length(field.name)).collect();
        assert!(
            again.iter().map(|field| (field.name.to_owned(), field.value)).eq(read),
            "it is written as it was read"
        );
    }

    const LIMITS: HeadLimits = HeadLimits { bytes: 4096, fields: 20 };

    #[cfg(test)]
    #[test]
    fn the_corpus_keeps_its_promises() {
        corpus::feed("request_head", check);
    }
}

#[cfg(test)]
mod response_tests {
    use bytes::Buf;

    use super::*;
    use crate::wire::head::Name;

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

#[cfg(test)]
mod tests;
