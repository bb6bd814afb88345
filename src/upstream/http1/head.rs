//! The head of a request as it is sent, and that of an answer as it is read.

use std::mem;
use std::mem::MaybeUninit;

use bytes::Bytes;
use http::HeaderMap;
use http::HeaderValue;
use http::Method;
use http::Request;
use http::Response;
use http::StatusCode;
use http::Uri;
use http::Version;
use http::header::CONNECTION;
use http::header::CONTENT_LENGTH;
use http::header::TRANSFER_ENCODING;
use http_body::Body;
use httparse::ParserConfig;
use httparse::Status;
use hyper::ext::ReasonPhrase;

use crate::http1::Length;
use crate::http1::Outbox;
use crate::http1::fields;

/// The head of an answer, and what follows it.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) response: Response<()>,
    /// Of the body.
    pub(super) length: Length,
    /// Whether the server means to answer further requests on this connection.
    pub(super) goes_on: bool,
}

/// An answer that is not HTTP/1.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(super) enum Nonsense {
    #[error("its first line is no status line")]
    StatusLine,
    #[error("its head is malformed")]
    Head,
    #[error("its head is too long")]
    TooLong,
    #[error("it sends informational answers without end")]
    NoEnd,
    #[error("its head has too many fields")]
    TooManyFields,
    #[error("it does not say how long its body is")]
    Length,
    #[error("its Transfer-Encoding is not one plain `chunked`")]
    Coding,
}

/// Writes the head of a request. The body alone says how long it is: `None`, there is none.
pub(super) fn write<B: Body>(request: &Request<B>, out: &mut Outbox) -> Option<Length> {
    let out = out.small();
    out.reserve(USUAL);
    out.extend_from_slice(request.method().as_str().as_bytes());
    out.push(b' ');
    put_target(request.uri(), out);
    out.extend_from_slice(b" HTTP/1.1\r\n");
    let length = length_of(request);
    for (name, value) in request.headers() {
        if *name != TRANSFER_ENCODING && (length.is_none() || *name != CONTENT_LENGTH) {
            fields::line(name, value.as_bytes(), out);
        }
    }
    match length {
        Some(Length::Known(length)) => {
            fields::line(&CONTENT_LENGTH, itoa::Buffer::new().format(length).as_bytes(), out);
        }
        Some(Length::Chunked | Length::ToTheEnd) => fields::line(&TRANSFER_ENCODING, b"chunked", out),
        None => {}
    }
    out.extend_from_slice(b"\r\n");
    length
}

/// In origin form. An absolute target may have had a query and no path.
fn put_target(target: &Uri, out: &mut Vec<u8>) {
    let path = target.path();
    out.extend_from_slice(if path.is_empty() { "/" } else { path }.as_bytes());
    if let Some(query) = target.query() {
        out.push(b'?');
        out.extend_from_slice(query.as_bytes());
    }
}

fn length_of<B: Body>(request: &Request<B>) -> Option<Length> {
    if request.body().is_end_stream() {
        return None;
    }
    let stated = || request.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok();
    Some(request.body().size_hint().exact().or_else(stated).map_or(Length::Chunked, Length::Known))
}

/// Whether this may become an answer. Whoever speaks something else may wait for us to speak.
pub(super) fn may_begin(read: &[u8]) -> bool {
    let start = read.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(read.len());
    read[start..].iter().zip(b"HTTP/1.").all(|(byte, expected)| byte == expected)
}

/// Reads the head of an answer to a request off the front of what came, and says how long it is; `None`: more of it is
/// to come. If the answer is the last one, its fields take the place of the request's, whose memory is used again.
pub(super) fn read<B>(
    came: &Bytes,
    request: &mut Request<B>,
    most_fields: usize,
) -> Result<Option<(Head, usize)>, Nonsense> {
    let mut few = [const { MaybeUninit::uninit() }; USUAL_FIELDS];
    match read_into(&mut few[..most_fields.min(USUAL_FIELDS)], came, request) {
        Err(Nonsense::TooManyFields) if most_fields > USUAL_FIELDS => {
            let mut many = vec![MaybeUninit::uninit(); most_fields];
            read_into(&mut many, came, request)
        }
        read => read,
    }
}

fn read_into<'c, B>(
    parsed: &mut [MaybeUninit<httparse::Header<'c>>],
    came: &'c Bytes,
    request: &mut Request<B>,
) -> Result<Option<(Head, usize)>, Nonsense> {
    let mut answer = httparse::Response::new(&mut []);
    let config = ParserConfig::default();
    let end = match config.parse_response_with_uninit_headers(&mut answer, came, parsed) {
        Ok(Status::Complete(end)) => end,
        Ok(Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Nonsense::TooManyFields),
        Err(httparse::Error::Status | httparse::Error::Version) => return Err(Nonsense::StatusLine),
        Err(_) => return Err(Nonsense::Head),
    };
    let status = answer.code.and_then(|code| StatusCode::from_u16(code).ok()).ok_or(Nonsense::StatusLine)?;
    let version = if answer.version == Some(0) { Version::HTTP_10 } else { Version::HTTP_11 };
    let is_last = !status.is_informational() || status == StatusCode::SWITCHING_PROTOCOLS;
    let mut headers = if is_last { mem::take(request.headers_mut()) } else { HeaderMap::new() };
    headers.clear();
    fields::read(came, answer.headers, &mut headers).map_err(|_| Nonsense::Head)?;
    let framing = Framing::of(&headers)?;
    let length = framing.body(status, version, request.method())?;
    let may_stray = status == StatusCode::NO_CONTENT && framing.announces_body();
    let goes_on = length != Length::ToTheEnd && !may_stray && framing.is_kept(version);
    let mut response = Response::new(());
    *response.status_mut() = status;
    *response.version_mut() = version;
    *response.headers_mut() = headers;
    if let Some(reason) = answer.reason.filter(|reason| Some(*reason) != status.canonical_reason())
        && let Ok(reason) = ReasonPhrase::try_from(came.slice_ref(reason.as_bytes()))
    {
        response.extensions_mut().insert(reason);
    }
    Ok(Some((Head { response, length, goes_on }, end)))
}

/// What the fields of an answer say of its framing.
#[derive(Default)]
struct Framing {
    coding: Coding,
    length: Option<u64>,
    closes: bool,
    keeps_alive: bool,
}

/// The transfer codings of all lines, those that change nothing aside.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Coding {
    #[default]
    None,
    Chunked,
    /// What the client would get still coded: it is not told of them.
    Others,
}

impl Framing {
    /// One look over all fields: none of them has to be searched for.
    fn of(headers: &HeaderMap) -> Result<Self, Nonsense> {
        let mut framing = Self::default();
        for (name, value) in headers {
            if *name == CONTENT_LENGTH {
                framing.note_length(value)?;
            } else if *name == TRANSFER_ENCODING {
                elements(value).for_each(|element| framing.coding.add(element));
            } else if *name == CONNECTION {
                framing.closes |= elements(value).any(|option| option.eq_ignore_ascii_case(b"close"));
                framing.keeps_alive |= elements(value).any(|option| option.eq_ignore_ascii_case(b"keep-alive"));
            }
        }
        Ok(framing)
    }

    /// It is one number, however often it is said.
    fn note_length(&mut self, value: &HeaderValue) -> Result<(), Nonsense> {
        for element in elements(value) {
            let digits = str::from_utf8(element).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            let length: u64 = digits.and_then(|digits| digits.parse().ok()).ok_or(Nonsense::Length)?;
            if self.length.replace(length).is_some_and(|before| before != length) {
                return Err(Nonsense::Length);
            }
        }
        Ok(())
    }

    /// How long the body of an answer to `method` is. Source: RFC 9112, section 6.3.
    fn body(&self, status: StatusCode, version: Version, method: &Method) -> Result<Length, Nonsense> {
        let is_empty = *method == Method::HEAD
            || status.is_informational()
            || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        match (self.coding, self.length) {
            (Coding::Others, _) => Err(Nonsense::Coding),
            (Coding::Chunked, _) if version == Version::HTTP_10 => Err(Nonsense::Coding),
            _ if is_empty => Ok(Length::Known(0)),
            (Coding::Chunked, _) => Ok(Length::Chunked),
            (Coding::None, None) => Ok(Length::ToTheEnd),
            (Coding::None, Some(length)) => Ok(Length::Known(length)),
        }
    }

    /// Where there may be no body, whoever does this is likely to send one all the same.
    fn announces_body(&self) -> bool {
        self.coding != Coding::None || self.length.is_some_and(|length| length > 0)
    }

    fn is_kept(&self, version: Version) -> bool {
        !self.closes && (version != Version::HTTP_10 || self.keeps_alive)
    }
}

impl Coding {
    /// One more is applied behind these.
    fn add(&mut self, coding: &[u8]) {
        let is = |name: &[u8]| coding.eq_ignore_ascii_case(name);
        *self = match self {
            _ if is(b"") || is(b"identity") => *self,
            Self::None if is(b"chunked") => Self::Chunked,
            _ => Self::Others,
        };
    }
}

fn elements(value: &HeaderValue) -> impl Iterator<Item = &[u8]> {
    value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

/// Most heads of requests are shorter.
const USUAL: usize = 1000;

/// Most answers have fewer fields.
const USUAL_FIELDS: usize = 100;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
#[cfg(test)]
mod tests {
    use bytes::Buf;
    use http_body_util::Empty;
    use http_body_util::Full;
    use proptest::prelude::*;

    use super::*;

    fn answer(method: &Method, head: &str) -> Result<Head, Nonsense> {
        let mut request = Request::new(());
        *request.method_mut() = method.clone();
        read(&Bytes::copy_from_slice(head.as_bytes()), &mut request, 200).map(|read| read.expect("a whole head").0)
    }

    #[track_caller]
    fn check(head: &str, expected: Result<(Length, bool), Nonsense>) {
        let head = format!("{head}\r\n\r\n");
        assert_eq!(answer(&Method::GET, &head).map(|head| (head.length, head.goes_on)), expected, "{head:?}");
    }

    #[test]
    fn an_answer_ends_where_its_head_says() {
        check("HTTP/1.1 200 OK\r\nContent-Length: 5", Ok((Length::Known(5), true)));
        check("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\ncontent-length: 5", Ok((Length::Known(5), true)));
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked", Ok((Length::Chunked, true)));
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5", Ok((Length::Chunked, true)));
        check("HTTP/1.1 200 OK", Ok((Length::ToTheEnd, false)));
        check("HTTP/1.1 204 No", Ok((Length::Known(0), true)));
        check("HTTP/1.1 204 No\r\nContent-Length: 0", Ok((Length::Known(0), true)));
        check("HTTP/1.1 204 No\r\nContent-Length: 5", Ok((Length::Known(0), false)));
        check("HTTP/1.1 204 No\r\nTransfer-Encoding: chunked", Ok((Length::Known(0), false)));
        check("HTTP/1.1 304 No\r\nContent-Length: 5", Ok((Length::Known(0), true)));
        check("HTTP/1.1 100 Continue", Ok((Length::Known(0), true)));
    }

    #[test]
    fn a_length_that_is_none_is_nonsense() {
        for length in ["", "-1", "+1", "1 2", "two", "1, 2", "1,", "18446744073709551616", "0x1"] {
            check(&format!("HTTP/1.1 200 OK\r\nContent-Length: {length}"), Err(Nonsense::Length));
        }
    }

    #[test]
    fn an_answer_comes_as_it_is_or_in_chunks_and_in_no_other_coding() {
        let coded = |coding: &str| format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: {coding}");
        for one in ["chunked", " ,CHUNKED, ", "identity, chunked", "chunked\r\nTransfer-Encoding: Identity"] {
            check(&coded(one), Ok((Length::Chunked, true)));
        }
        check(&coded("identity"), Ok((Length::ToTheEnd, false)));
        check(&coded("\r\nContent-Length: 5"), Ok((Length::Known(5), true)));
        for other in ["gzip", "gzip, chunked", "chunked, gzip", "chunked, chunked", "chunked;a", "x", "identity;a"] {
            check(&coded(other), Err(Nonsense::Coding));
            check(&coded(other).replace("200", "304"), Err(Nonsense::Coding));
            check(&coded(&other.replace(',', "\r\nTransfer-Encoding:")), Err(Nonsense::Coding));
            check(&format!("{}\r\nContent-Length: 5", coded(other)), Err(Nonsense::Coding));
        }
        check("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked", Err(Nonsense::Coding));
        check("HTTP/1.0 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 5", Ok((Length::Known(5), false)));
    }

    #[test]
    fn an_answer_has_as_many_fields_as_it_may_and_no_more() {
        let with = |count: usize| {
            answer(&Method::GET, &format!("HTTP/1.1 204 No\r\n{}\r\n", "Set-Cookie: a\r\n".repeat(count)))
        };
        for count in [99, 100, 101, 200] {
            assert_eq!(with(count).unwrap().response.headers().get_all("set-cookie").iter().count(), count);
        }
        assert_eq!(with(201).unwrap_err(), Nonsense::TooManyFields);
    }

    #[test]
    fn a_connection_is_kept_as_the_version_has_it_unless_it_is_said() {
        let known = |goes_on| Ok((Length::Known(0), goes_on));
        check("HTTP/1.1 204 No\r\nConnection: x, Close", known(false));
        check("HTTP/1.0 204 No", known(false));
        check("HTTP/1.0 204 No\r\nConnection: Keep-Alive", known(true));
        check("HTTP/1.0 204 No\r\nConnection: keep-alive, close", known(false));
    }

    #[test]
    fn an_answer_to_head_has_no_body_whatever_it_says() {
        let head = answer(&Method::HEAD, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").unwrap();
        assert_eq!((head.length, head.goes_on), (Length::Known(0), true));
        assert_eq!(head.response.headers()[CONTENT_LENGTH], "5");
    }

    #[test]
    fn what_cannot_become_an_answer_is_seen_at_once() {
        for start in ["", "\r", "\r\nHTT", "HTTP/1.", "HTTP/1.1 200 OK"] {
            assert!(may_begin(start.as_bytes()), "{start:?}");
        }
        for start in ["220 mail", "S", "http/1.1", "HTTP/2", "\r\n<html>"] {
            assert!(!may_begin(start.as_bytes()), "{start:?}");
        }
    }

    #[track_caller]
    fn written<B: Body>(request: &Request<B>, expected: (&str, Option<Length>)) {
        let mut out = Outbox::default();
        let length = write(request, &mut out);
        let head = out.copy_to_bytes(out.remaining());
        assert_eq!((&*String::from_utf8_lossy(&head), length), expected);
    }

    #[test]
    fn the_body_alone_says_how_long_it_is() {
        let post = || Request::post("/a?b").header("host", "h").header("content-length", "7").header("x-a", "1");
        written(
            &post().header("transfer-encoding", "gzip").body(Full::<Bytes>::from("abc")).unwrap(),
            ("POST /a?b HTTP/1.1\r\nhost: h\r\nx-a: 1\r\ncontent-length: 3\r\n\r\n", Some(Length::Known(3))),
        );
        written(
            &post().header("transfer-encoding", "gzip").body(Empty::<Bytes>::new()).unwrap(),
            ("POST /a?b HTTP/1.1\r\nhost: h\r\ncontent-length: 7\r\nx-a: 1\r\n\r\n", None),
        );
        let stream = http_body_util::StreamBody::new(futures_util::stream::pending::<
            Result<http_body::Frame<Bytes>, std::convert::Infallible>,
        >());
        written(
            &Request::get("http://a?b").body(stream).unwrap(),
            ("GET /?b HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n", Some(Length::Chunked)),
        );
    }

    proptest! {
        #[test]
        fn no_head_makes_it_panic(head in "(HTTP/1\\.[01] |[0-9]{3}| |:|,|\r\n|Content-Length|Transfer-Encoding|chunked|Connection|\\PC){0,30}") {
            let whole = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n");
            for came in [whole, head] {
                let read = read(&Bytes::from(came.clone()), &mut Request::new(()), 200);
                prop_assert!(!matches!(read, Ok(Some((_, end))) if end > came.len()));
            }
        }
    }
}
