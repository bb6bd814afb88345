//! Reads the head of an application's response. Some malformed heads of old applications are tolerated.

use std::mem::MaybeUninit;
use std::ops::Range;

use http::Method;
use http::StatusCode;
use http::Version;
use httparse::ParserConfig;
use httparse::Status;
use memchr::memchr;

use crate::head::Fields;
use crate::head::KnownName;
use crate::head::ResponseHead;
use crate::head::Span;
use crate::http1::grammar::BodyLength;
use crate::http1::grammar::elements;
use crate::http1::grammar::list_has;

/// The head of a response, and what it says of the body and the connection.
#[derive(Debug)]
pub struct ParsedResponse {
    pub head: ResponseHead,
    /// The length of the body.
    pub body: BodyLength,
    /// Whether the server keeps the connection open for further requests.
    pub keeps_alive: bool,
    /// In bytes: the length of the head.
    pub length: usize,
}

/// The response is not HTTP/1.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidResponse {
    #[error("its first line is not a status line")]
    StatusLine,
    #[error("its head is malformed")]
    Head,
    #[error("its head is too long")]
    TooLong,
    #[error("it sends too many informational responses")]
    TooManyInterim,
    #[error("its head has too many fields")]
    TooManyFields,
    #[error("it does not say how long its body is")]
    BodyLength,
    #[error("its Transfer-Encoding is not one plain `chunked`")]
    Coding,
}

/// Whether this can be the beginning of a response. A server of another protocol may wait for us to speak first.
pub fn could_begin(read: &[u8]) -> bool {
    let start = read.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(read.len());
    read[start..].iter().zip(b"HTTP/1.").all(|(byte, expected)| byte == expected)
}

/// Parses the head of the response to a request with this method from the front of `received`. `None`: the head is not
/// complete.
pub fn parse(received: &[u8], method: &Method, most_fields: usize) -> Result<Option<ParsedResponse>, InvalidResponse> {
    let mut few = [const { MaybeUninit::uninit() }; USUAL_FIELDS];
    match parse_into(&mut few[..most_fields.min(USUAL_FIELDS)], received, method) {
        Err(InvalidResponse::TooManyFields) if most_fields > USUAL_FIELDS => {
            let mut many = vec![MaybeUninit::uninit(); most_fields];
            parse_into(&mut many, received, method)
        }
        parsed => parsed,
    }
}

fn parse_into<'c>(
    slots: &mut [MaybeUninit<httparse::Header<'c>>],
    received: &'c [u8],
    method: &Method,
) -> Result<Option<ParsedResponse>, InvalidResponse> {
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
        let end = match received[value.end..] {
            // As nearly all applications write it.
            [b'\r', b'\n', ..] => value.end + 2,
            _ => value.end + memchr(b'\n', &received[value.end..]).ok_or(InvalidResponse::Head)? + 1,
        };
        let length = field.value.len();
        fields
            .note(name.start, value.end, end, |line| line.len() - length..line.len())
            .map_err(|_| InvalidResponse::Head)?;
    }
    let framing = Framing::of(&fields)?;
    let body = framing.body(status, version, method)?;
    let may_send_body_anyway = status == StatusCode::NO_CONTENT && framing.announces_body();
    let keeps_alive = body != BodyLength::UntilClose && !may_send_body_anyway && framing.keeps_alive(version);
    let own_words = parsed.reason.filter(|reason| Some(*reason) != status.canonical_reason());
    let reason = own_words.filter(|reason| is_reason(reason.as_bytes())).map(|reason| {
        let Range { start, end } = place(reason.as_bytes(), received);
        Span::new(start, end)
    });
    let head = ResponseHead::new(status, fields).with_reason(reason);
    Ok(Some(ParsedResponse { head, body, keeps_alive, length }))
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

/// What the fields of a response say of its framing.
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
    fn body(&self, status: StatusCode, version: Version, method: &Method) -> Result<BodyLength, InvalidResponse> {
        let is_empty = *method == Method::HEAD
            || status.is_informational()
            || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        match (self.coding, self.length) {
            (TransferCoding::Unsupported, _) => Err(InvalidResponse::Coding),
            (TransferCoding::Chunked, _) if version == Version::HTTP_10 => Err(InvalidResponse::Coding),
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
        !self.closes && (version != Version::HTTP_10 || self.asks_keep_alive)
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

/// Most responses have fewer fields.
const USUAL_FIELDS: usize = 100;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
        check("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked", Err(InvalidResponse::Coding));
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
}
