//! The head of a response, and what it says of its body.

use http::Method;

use super::error::InvalidResponse;
use super::framing::framing_of;
use super::repair::Repairs;
use super::strict;
use super::tolerant;
use crate::head::ResponseHead;
use crate::http1::grammar::BodyLength;

/// The head of a response, and what it says of the body and the connection.
#[derive(Debug)]
pub struct ParsedResponse {
    pub head: ResponseHead,
    /// The length of the body.
    pub body: BodyLength,
    /// Whether the server keeps the connection open for further requests.
    pub keeps_alive: bool,
    /// What was mended in the head.
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
    let lines = match strict::read(received, most_fields) {
        Some(lines) => Some(lines),
        None => tolerant::read(received, most_fields)?,
    };
    let Some(lines) = lines else { return Ok(None) };
    let (body, keeps_alive) = framing_of(&lines, method)?;
    let head = ResponseHead::new(lines.status, lines.fields).with_reason(lines.reason);
    Ok(Some(ParsedResponse { head, body, keeps_alive, repairs: lines.repairs, length: lines.length }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::head::KnownName;

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
}
