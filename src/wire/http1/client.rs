//! The client's side of HTTP/1.1: heads of requests are written, heads of responses are read.

use std::mem::MaybeUninit;
use std::ops::Range;

use http::{Method, StatusCode, Version};
use http_body::Body;
use httparse::{ParserConfig, Status};
use memchr::memchr;

use crate::wire::head::{Fields, KnownName, RequestHead, ResponseHead, Span, write_line};
use crate::wire::http1::grammar::{BodyLength, LINE_END, Lines, WriteBuffer, elements, list_has, note_lines};
use crate::wire::http1::repair::{Repairs, repair_head};

/// In bytes: the room for a head without its fields.
const ROOM: usize = 128;

/// Writes the head of a request. The body decides its length; length fields are ignored. `None`: no body.
pub fn write_head<B: Body>(head: &mut RequestHead, body: &B, out: &mut WriteBuffer) -> Option<BodyLength> {
    let length = body_length(head, body);
    head.fields.remove(KnownName::TRANSFER_ENCODING);
    if length.is_some() {
        head.fields.remove(KnownName::CONTENT_LENGTH);
    }
    // Where RFC 9110 (section 7.2) wants it.
    head.fields.move_to_front(KnownName::HOST);
    let out = out.small();
    out.reserve(ROOM + head.fields.text_length());
    out.extend_from_slice(head.method.as_str().as_bytes());
    out.push(b' ');
    let target = head.path_and_query();
    out.extend_from_slice(if target.is_empty() { "/" } else { target }.as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    head.fields.write(out);
    match length {
        Some(BodyLength::Known(length)) => {
            write_line(b"content-length", itoa::Buffer::new().format(length).as_bytes(), out);
        }
        Some(BodyLength::Chunked | BodyLength::UntilClose) => write_line(b"transfer-encoding", b"chunked", out),
        None => {}
    }
    out.extend_from_slice(b"\r\n");
    length
}

fn body_length<B: Body>(head: &RequestHead, body: &B) -> Option<BodyLength> {
    if body.is_end_stream() {
        return None;
    }
    let stated = || str::from_utf8(head.fields.get(KnownName::CONTENT_LENGTH)?).ok()?.parse().ok();
    Some(body.size_hint().exact().or_else(stated).map_or(BodyLength::Chunked, BodyLength::Known))
}

// Reads a head as most clients do: some malformed heads of old applications are tolerated.

/// Most responses have fewer fields.
const USUAL_FIELDS: usize = 100;

fn read_as_received(received: &[u8], most_fields: usize) -> Result<Option<HeadLines>, InvalidResponse> {
    let mut few = [const { MaybeUninit::uninit() }; USUAL_FIELDS];
    match read_into(&mut few[..most_fields.min(USUAL_FIELDS)], received) {
        Err(InvalidResponse::TooManyFields) if most_fields > USUAL_FIELDS => {
            let mut many = vec![MaybeUninit::uninit(); most_fields];
            read_into(&mut many, received)
        }
        lines => lines,
    }
}

fn read_into<'c>(
    slots: &mut [MaybeUninit<httparse::Header<'c>>],
    received: &'c [u8],
) -> Result<Option<HeadLines>, InvalidResponse> {
    let mut parsed = httparse::Response::new(&mut []);
    let config = ParserConfig::default();
    let length = match config.parse_response_with_uninit_headers(&mut parsed, received, slots) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(InvalidResponse::TooManyFields),
        Err(httparse::Error::Status | httparse::Error::Version) => return Err(InvalidResponse::StatusLine),
        Err(_) => return Err(InvalidResponse::Head),
    };
    let status = parsed.code.and_then(|code| StatusCode::from_u16(code).ok()).ok_or(InvalidResponse::StatusLine)?;
    let version = if parsed.version == Some(0) { Version::HTTP_10 } else { Version::HTTP_11 };
    let mut fields = Fields::on(&received[..length]);
    for field in parsed.headers.iter() {
        let (name, value) = (place(field.name.as_bytes(), received), place(field.value, received));
        let end = value.end + memchr(b'\n', &received[value.end..]).ok_or(InvalidResponse::Head)? + 1;
        let length = field.value.len();
        fields
            .note(name.start, value.end, end, |line| line.len() - length..line.len())
            .map_err(|_| InvalidResponse::Head)?;
    }
    let own_words = parsed.reason.filter(|reason| Some(*reason) != status.canonical_reason());
    let reason = own_words.filter(|reason| is_reason(reason.as_bytes())).map(|reason| {
        let Range { start, end } = place(reason.as_bytes(), received);
        Span::new(start, end)
    });
    Ok(Some(HeadLines { status, version, reason, fields, repairs: Repairs::default(), length }))
}

/// Where a part of `whole` stands in it.
fn place(part: &[u8], whole: &[u8]) -> Range<usize> {
    let start = (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize);
    start..start + part.len()
}

/// Whether a reason phrase may have these bytes (RFC 9112, section 4).
fn is_reason(phrase: &[u8]) -> bool {
    phrase.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~' | 0x80..))
}

// The head of a response, and what it says of its body.

/// The head of a response, and what it says of the body and the connection.
#[derive(Debug)]
pub struct ParsedResponse {
    pub head: ResponseHead,
    /// The length of the body.
    pub body: BodyLength,
    /// Whether the server keeps the connection open for further requests.
    pub keeps_alive: bool,
    /// The repairs of the head.
    pub repairs: Repairs,
    /// In bytes: the length of the head.
    pub length: usize,
}

/// Whether this can be the beginning of a response. A server of another protocol may wait for us to speak first.
pub fn could_begin(read: &[u8]) -> bool {
    let start = read.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(read.len());
    read[start..].iter().zip(b"HTTP/1.").all(|(byte, expected)| byte == expected)
}

/// Parses the head of the response to a request with this method from the front of `received`. `None`: the head is not
/// complete.
pub fn parse(received: &[u8], method: &Method, most_fields: usize) -> Result<Option<ParsedResponse>, InvalidResponse> {
    let lines = match read_strictly(received, most_fields) {
        Some(lines) => Some(lines),
        None => read_tolerantly(received, most_fields)?,
    };
    let Some(lines) = lines else { return Ok(None) };
    let (body, keeps_alive) = framing_of(&lines, method)?;
    let head = ResponseHead::new(lines.status, lines.fields).with_reason(lines.reason);
    Ok(Some(ParsedResponse { head, body, keeps_alive, repairs: lines.repairs, length: lines.length }))
}

/// The head at the front of `received`. `None`: it is not whole, or it is one for [`tolerant`](crate::wire::http1::client::parse).
pub(super) fn read_strictly(received: &[u8], most_fields: usize) -> Option<HeadLines> {
    let mut lines = Lines::of(received);
    let end = lines.next_end().ok()??;
    let (version, code, reason) = status_line(&received[..end])?;
    let status = StatusCode::from_bytes(code).ok()?;
    let mut fields = Fields::on(received);
    let length = note_lines(&mut fields, &mut lines, end + LINE_END.len(), most_fields).ok()??;
    fields.truncate_text(length);
    let is_own = status.canonical_reason().is_none_or(|usual| usual.as_bytes() != reason);
    let reason = is_own.then(|| Span::new(end - reason.len(), end));
    Some(HeadLines { status, version, reason, fields, repairs: Repairs::default(), length })
}

// Reads a head that is written as RFC 9112 says, which nearly all are.

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

/// The head at the front of `received`. `None`: it is not whole.
pub(super) fn read_tolerantly(received: &[u8], most_fields: usize) -> Result<Option<HeadLines>, InvalidResponse> {
    match read_as_received(received, most_fields) {
        Err(InvalidResponse::Head) => {
            let (text, repairs) = repair_head(received).ok_or(InvalidResponse::Head)?;
            let lines = read_as_received(&text, most_fields)?;
            Ok(lines.map(|lines| HeadLines { repairs, ..lines }))
        }
        lines => lines,
    }
}

// The lines of a head.

/// A head whose framing is not read yet.
#[derive(Debug)]
pub(super) struct HeadLines {
    pub(super) status: StatusCode,
    pub(super) version: Version,
    /// The words of the application for the status, where they are its own. They stand in the text of the fields.
    pub(super) reason: Option<Span>,
    pub(super) fields: Fields,
    /// The repairs of the head.
    pub(super) repairs: Repairs,
    /// In bytes: the length of the head.
    pub(super) length: usize,
}

// Why a response is invalid.

/// The response is not HTTP/1.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidResponse {
    #[error("its first line is not a status line")]
    StatusLine,
    #[error("its head is malformed")]
    Head,
    #[error("its head is too long")]
    TooLong,
    #[error("it sends informational responses without end")]
    TooManyInterim,
    #[error("its head has too many fields")]
    TooManyFields,
    #[error("it does not say how long its body is")]
    BodyLength,
    #[error("its Transfer-Encoding is not one plain `chunked`")]
    Coding,
}

// Where the body of a response ends, and whether its connection stays open.

/// The length of the body of the response to `method`, and whether the server keeps the connection open.
pub(super) fn framing_of(lines: &HeadLines, method: &Method) -> Result<(BodyLength, bool), InvalidResponse> {
    let HeadLines { status, version, .. } = *lines;
    let framing = Framing::of(&lines.fields)?;
    let body = framing.body(status, method)?;
    let may_send_body_anyway = status == StatusCode::NO_CONTENT && framing.announces_body();
    Ok((body, body != BodyLength::UntilClose && !may_send_body_anyway && framing.keeps_alive(version)))
}

/// The fields of a response that decide its framing.
#[derive(Default)]
struct Framing {
    coding: TransferCoding,
    length: Option<u64>,
    closes: bool,
    asks_keep_alive: bool,
}

/// The transfer codings of all `Transfer-Encoding` lines, without `identity`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum TransferCoding {
    #[default]
    None,
    Chunked,
    /// The client would get the body still coded, because `Transfer-Encoding` is not forwarded.
    Unsupported,
}

impl Framing {
    fn of(fields: &Fields) -> Result<Self, InvalidResponse> {
        let says = |option| fields.get_all(KnownName::CONNECTION).any(|value| list_has(value, option));
        let mut framing = Self { closes: says(b"close"), asks_keep_alive: says(b"keep-alive"), ..Self::default() };
        for value in fields.get_all(KnownName::CONTENT_LENGTH) {
            framing.note_length(value)?;
        }
        let codings = fields.get_all(KnownName::TRANSFER_ENCODING).flat_map(elements);
        codings.for_each(|coding| framing.coding.add(coding));
        Ok(framing)
    }

    /// All values must be the same number.
    fn note_length(&mut self, value: &[u8]) -> Result<(), InvalidResponse> {
        for element in elements(value) {
            let digits = str::from_utf8(element).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            let length: u64 = digits.and_then(|digits| digits.parse().ok()).ok_or(InvalidResponse::BodyLength)?;
            if self.length.replace(length).is_some_and(|before| before != length) {
                return Err(InvalidResponse::BodyLength);
            }
        }
        Ok(())
    }

    /// The length of the body of a response to `method` (RFC 9112, section 6.3).
    fn body(&self, status: StatusCode, method: &Method) -> Result<BodyLength, InvalidResponse> {
        let is_empty = *method == Method::HEAD
            || status.is_informational()
            || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        match (self.coding, self.length) {
            (TransferCoding::Unsupported, _) => Err(InvalidResponse::Coding),
            _ if is_empty => Ok(BodyLength::Known(0)),
            (TransferCoding::Chunked, _) => Ok(BodyLength::Chunked),
            (TransferCoding::None, None) => Ok(BodyLength::UntilClose),
            (TransferCoding::None, Some(length)) => Ok(BodyLength::Known(length)),
        }
    }

    /// Whether the head announces a body. A server that does so where none is allowed is likely to send it.
    fn announces_body(&self) -> bool {
        self.coding != TransferCoding::None || self.length.is_some_and(|length| length > 0)
    }

    fn keeps_alive(&self, version: Version) -> bool {
        // An older server that sends chunks may not know where they end.
        let is_old = version == Version::HTTP_10;
        !self.closes && (!is_old || self.asks_keep_alive && self.coding == TransferCoding::None)
    }
}

impl TransferCoding {
    /// Adds the next coding of the list.
    fn add(&mut self, coding: &[u8]) {
        let is = |name: &[u8]| coding.eq_ignore_ascii_case(name);
        *self = match self {
            _ if is(b"") || is(b"identity") => *self,
            Self::None if is(b"chunked") => Self::Chunked,
            _ => Self::Unsupported,
        };
    }
}

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz {
    //! The fuzz target of this parser.

    use http::Method;

    use super::{HeadLines, ParsedResponse, could_begin, parse, read_strictly, read_tolerantly};
    use crate::wire::head::ResponseHead;
    use crate::words::corpus;

    /// A head is read once it is whole and never before, and does not depend on what follows it. What is read strictly is read
    /// the same tolerantly.
    pub fn check(bytes: &[u8]) {
        // The library that reads tolerantly knows two versions.
        let is_usual = bytes.starts_with(b"HTTP/1.0") || bytes.starts_with(b"HTTP/1.1");
        if let Some(lines) = read_strictly(bytes, MOST_FIELDS).filter(|_| is_usual) {
            let whole = |lines: &HeadLines| {
                let HeadLines { status, version, reason, fields, repairs, length } = lines;
                format!("{status} {version:?} {reason:?} {:?} {repairs:?} {length}", fields.iter().collect::<Vec<_>>())
            };
            let tolerant =
                read_tolerantly(bytes, MOST_FIELDS).expect("a strict reader accepts it").expect("it is whole");
            assert_eq!(whole(&lines), whole(&tolerant));
        }
        for method in [Method::GET, Method::HEAD, Method::CONNECT] {
            let parse_head = |bytes: &[u8]| parse(bytes, &method, MOST_FIELDS);
            let Ok(Some(ParsedResponse { head, length, .. })) = parse_head(bytes) else { continue };
            assert!(length <= bytes.len() && head.fields.len() <= MOST_FIELDS);
            assert!(could_begin(bytes), "it was refused at its first bytes");
            let again = parse_head(&bytes[..length]).expect("it was a head").expect("it was whole");
            let whole = |head: &ResponseHead| format!("{head:?} {:?}", head.fields.text());
            assert_eq!((whole(&again.head), again.length), (whole(&head), length), "it depends on what follows it");
            for shorter in corpus::places(length) {
                let outcome = parse_head(&bytes[..shorter]);
                assert!(matches!(outcome, Ok(None)), "{outcome:?} after {shorter} of {length} bytes");
            }
        }
    }

    const MOST_FIELDS: usize = 100;

    #[cfg(test)]
    #[test]
    fn the_corpus_keeps_its_promises() {
        corpus::feed("answer_head", check);
    }
}

#[cfg(test)]
mod tests {
    use bytes::{Buf, Bytes};
    use http::Method;
    use http_body_util::{Empty, Full};
    use proptest::prelude::*;

    use super::*;
    use crate::wire::head::{KnownName, Name};

    fn parse_response(method: &Method, head: &str) -> Result<ParsedResponse, InvalidResponse> {
        parse(head.as_bytes(), method, 200).map(|parsed| parsed.expect("a whole head"))
    }

    #[track_caller]
    fn check(head: &str, expected: Result<(BodyLength, bool), InvalidResponse>) {
        let head = format!("{head}\r\n\r\n");
        assert_eq!(
            parse_response(&Method::GET, &head).map(|parsed| (parsed.body, parsed.keeps_alive)),
            expected,
            "{head:?}"
        );
    }

    #[test]
    fn a_response_ends_where_its_head_says() {
        check("HTTP/1.1 200 OK\r\nContent-Length: 5", Ok((BodyLength::Known(5), true)));
        check("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\ncontent-length: 5", Ok((BodyLength::Known(5), true)));
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked", Ok((BodyLength::Chunked, true)));
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5", Ok((BodyLength::Chunked, true)));
        check("HTTP/1.1 200 OK", Ok((BodyLength::UntilClose, false)));
        check("HTTP/1.1 204 No", Ok((BodyLength::Known(0), true)));
        check("HTTP/1.1 204 No\r\nContent-Length: 0", Ok((BodyLength::Known(0), true)));
        check("HTTP/1.1 204 No\r\nContent-Length: 5", Ok((BodyLength::Known(0), false)));
        check("HTTP/1.1 204 No\r\nTransfer-Encoding: chunked", Ok((BodyLength::Known(0), false)));
        check("HTTP/1.1 304 No\r\nContent-Length: 5", Ok((BodyLength::Known(0), true)));
        check("HTTP/1.2 204 No", Ok((BodyLength::Known(0), true)));
        check("HTTP/1.1 100 Continue", Ok((BodyLength::Known(0), true)));
    }

    #[test]
    fn a_length_that_is_no_number_is_invalid() {
        for length in ["", "-1", "+1", "1 2", "two", "1, 2", "1,", "18446744073709551616", "0x1"] {
            check(&format!("HTTP/1.1 200 OK\r\nContent-Length: {length}"), Err(InvalidResponse::BodyLength));
        }
    }

    #[test]
    fn a_response_has_no_coding_or_chunked_and_no_other() {
        let coded = |coding: &str| format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: {coding}");
        for one in ["chunked", " ,CHUNKED, ", "identity, chunked", "chunked\r\nTransfer-Encoding: Identity"] {
            check(&coded(one), Ok((BodyLength::Chunked, true)));
        }
        check(&coded("identity"), Ok((BodyLength::UntilClose, false)));
        check(&coded("\r\nContent-Length: 5"), Ok((BodyLength::Known(5), true)));
        for other in ["gzip", "gzip, chunked", "chunked, gzip", "chunked, chunked", "chunked;a", "x", "identity;a"] {
            check(&coded(other), Err(InvalidResponse::Coding));
            check(&coded(other).replace("200", "304"), Err(InvalidResponse::Coding));
            check(&coded(&other.replace(',', "\r\nTransfer-Encoding:")), Err(InvalidResponse::Coding));
            check(&format!("{}\r\nContent-Length: 5", coded(other)), Err(InvalidResponse::Coding));
        }
        let closes = Ok((BodyLength::Chunked, false));
        check("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked", closes);
        check("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive", closes);
        check("HTTP/1.0 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 5", Ok((BodyLength::Known(5), false)));
    }

    #[test]
    fn a_response_has_at_most_the_allowed_number_of_fields() {
        let with = |count: usize| {
            parse_response(&Method::GET, &format!("HTTP/1.1 204 No\r\n{}\r\n", "Set-Cookie: a\r\n".repeat(count)))
        };
        for count in [99, 100, 101, 200] {
            assert_eq!(with(count).unwrap().head.fields.get_all(KnownName::SET_COOKIE).count(), count);
        }
        assert_eq!(with(201).unwrap_err(), InvalidResponse::TooManyFields);
    }

    #[test]
    fn the_version_decides_whether_a_connection_stays_open_unless_the_head_does() {
        let known = |keeps_alive| Ok((BodyLength::Known(0), keeps_alive));
        check("HTTP/1.1 204 No\r\nConnection: x, Close", known(false));
        check("HTTP/1.0 204 No", known(false));
        check("HTTP/1.0 204 No\r\nConnection: Keep-Alive", known(true));
        check("HTTP/1.0 204 No\r\nConnection: keep-alive, close", known(false));
    }

    #[test]
    fn a_response_to_head_has_no_body_whatever_its_fields_say() {
        let parsed = parse_response(&Method::HEAD, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").unwrap();
        assert_eq!((parsed.body, parsed.keeps_alive), (BodyLength::Known(0), true));
        assert_eq!(parsed.head.fields.get(KnownName::CONTENT_LENGTH), Some(&b"5"[..]));
    }

    #[test]
    fn bytes_that_cannot_begin_a_response_are_found_at_once() {
        for start in ["", "\r", "\r\nHTT", "HTTP/1.", "HTTP/1.1 200 OK"] {
            assert!(could_begin(start.as_bytes()), "{start:?}");
        }
        for start in ["220 mail", "S", "http/1.1", "HTTP/2", "\r\n<html>"] {
            assert!(!could_begin(start.as_bytes()), "{start:?}");
        }
    }

    proptest! {
        #[test]
        fn no_head_makes_it_panic(head in "(HTTP/1\\.[01] |[0-9]{3}| |:|,|\r\n|Content-Length|Transfer-Encoding|chunked|Connection|\\PC){0,30}") {
            let whole = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n");
            for came in [whole, head] {
                let parsed = parse(came.as_bytes(), &Method::GET, 200);
                prop_assert!(!matches!(parsed, Ok(Some(parsed)) if parsed.length > came.len()));
            }
        }
    }

    #[track_caller]
    fn written<B: Body>(
        mut head: RequestHead,
        fields: &[(&str, &str)],
        body: &B,
        expected: (&str, Option<BodyLength>),
    ) {
        for (name, value) in fields {
            head.fields.append(Name::of(name), value.as_bytes());
        }
        let mut out = WriteBuffer::default();
        let length = write_head(&mut head, body, &mut out);
        let head = out.copy_to_bytes(out.remaining());
        assert_eq!((&*String::from_utf8_lossy(&head), length), expected);
    }

    #[test]
    fn host_is_written_first() {
        let fields = [("x-a", "1"), ("accept", "*/*"), ("host", "h"), ("x-b", "2")];
        let expected = "GET / HTTP/1.1\r\nhost: h\r\nx-a: 1\r\naccept: */*\r\nx-b: 2\r\n\r\n";
        let head = RequestHead::to(Method::GET, "/").unwrap();
        written(head, &fields, &Empty::<Bytes>::new(), (expected, None));
    }

    #[test]
    fn the_body_alone_says_how_long_it_is() {
        let post = || RequestHead::to(Method::POST, "/a?b").unwrap();
        let fields = [("host", "h"), ("content-length", "7"), ("x-a", "1"), ("transfer-encoding", "gzip")];
        written(
            post(),
            &fields,
            &Full::<Bytes>::from("abc"),
            ("POST /a?b HTTP/1.1\r\nhost: h\r\nx-a: 1\r\ncontent-length: 3\r\n\r\n", Some(BodyLength::Known(3))),
        );
        written(
            post(),
            &fields,
            &Empty::<Bytes>::new(),
            ("POST /a?b HTTP/1.1\r\nhost: h\r\ncontent-length: 7\r\nx-a: 1\r\n\r\n", None),
        );
        let stream = http_body_util::StreamBody::new(futures_util::stream::pending::<
            Result<http_body::Frame<Bytes>, std::convert::Infallible>,
        >());
        written(
            RequestHead::to(Method::GET, "http://a?b").unwrap(),
            &[],
            &stream,
            ("GET /?b HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n", Some(BodyLength::Chunked)),
        );
    }
}
