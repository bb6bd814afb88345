//! The head of an answer, to bytes. How its body is framed is decided here, whatever the answer's own fields say.

use bytes::BytesMut;
use http::HeaderName;
use http::HeaderValue;
use http::Response;
use http::StatusCode;
use http::Version;
use http::header;
use http::header::CONNECTION;
use http::header::CONTENT_LENGTH;
use http::header::DATE;
use http::header::TRAILER;
use http::header::TRANSFER_ENCODING;
use http::response::Parts;
use http_body::SizeHint;
use hyper::ext::ReasonPhrase;

use super::head::has;
use crate::http1::Length;
use crate::http1::Outbox;
use crate::http1::fields;
use crate::listen::date;

/// What of a request its answer depends on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Asked {
    /// Nothing but a head is wanted.
    pub(super) is_head: bool,
    pub(super) version: Version,
    /// Another request may follow.
    pub(super) keeps_alive: bool,
    pub(super) takes_trailers: bool,
}

/// What of the body is known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Extent {
    Nothing,
    Known(u64),
    Unknown,
}

/// What follows the head.
#[derive(Debug)]
pub(super) struct Framed {
    /// `None`: no body.
    pub(super) body: Option<Length>,
    /// Another request may follow.
    pub(super) keeps_alive: bool,
    /// What may stand behind the body.
    pub(super) trailers: Vec<HeaderName>,
}

impl Extent {
    pub(super) fn of(is_end_stream: bool, hint: &SizeHint) -> Self {
        match hint.exact() {
            _ if is_end_stream => Self::Nothing,
            Some(length) => Self::Known(length),
            None => Self::Unknown,
        }
    }
}

/// Writes a head.
pub(super) fn write(parts: &Parts, extent: Extent, asked: Asked, out: &mut Outbox) -> Framed {
    let Parts { status, headers, .. } = parts;
    let is_old = asked.version == Version::HTTP_10;
    let out = out.small();
    out.reserve(ROOM + headers.len() * ROOM_FOR_A_FIELD);
    status_line(*status, parts.extensions.get(), out);

    let may_have_length = !status.is_informational() && *status != StatusCode::NO_CONTENT;
    let may_have_body = may_have_length && *status != StatusCode::NOT_MODIFIED && !asked.is_head;
    // The body that another request would be answered with has a length, though it is not sent.
    let stands_for_a_body = may_have_length && !may_have_body && extent == Extent::Nothing;
    let mut written = Written::default();
    let mut trailers = Vec::new();
    for (name, value) in headers {
        if *name == CONTENT_LENGTH {
            if written.length.is_some() || extent == Extent::Nothing && !stands_for_a_body || !may_have_length {
                continue;
            }
            let stated = str::from_utf8(value.as_bytes()).ok().and_then(|length| length.parse().ok());
            let Some(stated) = stated else { continue };
            written.length = Some(if let Extent::Known(known) = extent { known } else { stated });
        } else if *name == TRANSFER_ENCODING {
            continue;
        } else if *name == TRAILER {
            if is_old || !may_have_body {
                continue;
            }
            if asked.takes_trailers {
                trailers.extend(names(value));
            }
        } else if *name == CONNECTION {
            written.closes |= has(value, b"close");
            written.stays |= has(value, b"keep-alive");
        } else if *name == DATE {
            written.has_date = true;
        }
        fields::line(name, value.as_bytes(), out);
    }

    let length = match (written.length, extent) {
        (Some(length), _) => Length::Known(length),
        (None, Extent::Nothing | Extent::Known(0)) => {
            if may_have_body {
                out.extend_from_slice(b"content-length: 0\r\n");
            }
            Length::Known(0)
        }
        (None, Extent::Known(length)) => {
            if may_have_length {
                fields::line(&CONTENT_LENGTH, itoa::Buffer::new().format(length).as_bytes(), out);
            }
            Length::Known(length)
        }
        (None, Extent::Unknown) if is_old => Length::ToTheEnd,
        (None, Extent::Unknown) => {
            if may_have_body {
                out.extend_from_slice(b"transfer-encoding: chunked\r\n");
            }
            Length::Chunked
        }
    };
    let body = (may_have_body && length != Length::Known(0)).then_some(length);

    let may_stay = asked.keeps_alive && body != Some(Length::ToTheEnd);
    let is_upgrade = *status == StatusCode::SWITCHING_PROTOCOLS;
    if !may_stay && !written.closes && !is_upgrade {
        out.extend_from_slice(b"connection: close\r\n");
    } else if is_old && may_stay && !written.closes && !written.stays {
        out.extend_from_slice(b"connection: keep-alive\r\n");
    }
    if !written.has_date {
        out.extend_from_slice(b"date: ");
        date::write(out);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    Framed { body, keeps_alive: may_stay && !written.closes, trailers }
}

/// Writes the whole answer to a head that was none.
pub(super) fn refuse(status: StatusCode, out: &mut Outbox) {
    let out = out.small();
    status_line(status, None, out);
    out.extend_from_slice(b"connection: close\r\ncontent-length: 0\r\ndate: ");
    date::write(out);
    out.extend_from_slice(b"\r\n\r\n");
}

/// Writes an informational answer.
pub(super) fn inform(answer: &Response<()>, out: &mut BytesMut) {
    let mut head = Vec::with_capacity(ROOM + answer.headers().len() * ROOM_FOR_A_FIELD);
    status_line(answer.status(), answer.extensions().get(), &mut head);
    for (name, value) in answer.headers() {
        fields::line(name, value.as_bytes(), &mut head);
    }
    head.extend_from_slice(b"\r\n");
    out.extend_from_slice(&head);
}

/// What stands among the fields already.
#[derive(Debug, Default)]
struct Written {
    length: Option<u64>,
    closes: bool,
    stays: bool,
    has_date: bool,
}

/// The version is ours, whatever the client's is (RFC 9110, section 6.2).
fn status_line(status: StatusCode, reason: Option<&ReasonPhrase>, out: &mut Vec<u8>) {
    if status == StatusCode::OK && reason.is_none() {
        return out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    }
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.extend_from_slice(b" ");
    // Many parsers expect one.
    let canonical = status.canonical_reason().unwrap_or("<none>");
    out.extend_from_slice(reason.map_or(canonical.as_bytes(), ReasonPhrase::as_bytes));
    out.extend_from_slice(b"\r\n");
}

fn names(list: &HeaderValue) -> impl Iterator<Item = HeaderName> {
    list.as_bytes().split(|byte| *byte == b',').filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
}

/// Whether this may stand behind a body, if it was announced.
pub(super) fn may_trail(name: &HeaderName) -> bool {
    let may_not = [
        header::AUTHORIZATION,
        header::CACHE_CONTROL,
        header::CONTENT_ENCODING,
        CONTENT_LENGTH,
        header::CONTENT_RANGE,
        header::CONTENT_TYPE,
        header::HOST,
        header::MAX_FORWARDS,
        header::SET_COOKIE,
        header::TE,
        TRAILER,
        TRANSFER_ENCODING,
    ];
    !may_not.contains(name)
}

/// Of a head without its fields, and of a field.
const ROOM: usize = 128;
const ROOM_FOR_A_FIELD: usize = 48;

#[cfg(test)]
mod tests {
    use bytes::Buf;
    use http::Response;

    use super::*;

    const KEEPS: Asked = Asked { is_head: false, version: Version::HTTP_11, keeps_alive: true, takes_trailers: true };

    /// What is written between status line and date, and what follows it.
    #[track_caller]
    fn check(asked: Asked, extent: Extent, fields: &[(&str, &str)], lines: &str, body: Option<Length>, goes_on: bool) {
        let mut response = Response::builder();
        for (name, value) in fields {
            response = response.header(*name, *value);
        }
        let mut out = Outbox::default();
        let framed = write(&response.body(()).unwrap().into_parts().0, extent, asked, &mut out);
        let text = String::from_utf8(out.copy_to_bytes(out.remaining()).to_vec()).unwrap();
        let rest = text.strip_prefix("HTTP/1.1 200 OK\r\n").unwrap();
        let (before, _) = rest.split_once("date: ").unwrap();
        assert_eq!((before, framed.body, framed.keeps_alive), (lines, body, goes_on), "{fields:?}");
    }

    #[test]
    fn a_body_is_framed_by_what_is_known_of_it() {
        check(KEEPS, Extent::Nothing, &[("a", "b")], "a: b\r\ncontent-length: 0\r\n", None, true);
        check(KEEPS, Extent::Known(5), &[], "content-length: 5\r\n", Some(Length::Known(5)), true);
        check(KEEPS, Extent::Unknown, &[], "transfer-encoding: chunked\r\n", Some(Length::Chunked), true);
        let old = Asked { version: Version::HTTP_10, keeps_alive: false, ..KEEPS };
        let close = "connection: close\r\n";
        check(old, Extent::Unknown, &[], close, Some(Length::ToTheEnd), false);
        check(Asked { keeps_alive: true, ..old }, Extent::Unknown, &[], close, Some(Length::ToTheEnd), false);
        let known = Some(Length::Known(5));
        check(old, Extent::Known(5), &[], &format!("content-length: 5\r\n{close}"), known, false);
    }

    #[test]
    fn an_answer_that_cannot_have_a_body_says_nothing_of_its_length_unless_another_request_would_get_one() {
        let told = |status: u16, is_head: bool, extent| {
            let response = Response::builder().status(status).header("content-length", "5").body(()).unwrap();
            let mut out = Outbox::default();
            let framed = write(&response.into_parts().0, extent, Asked { is_head, ..KEEPS }, &mut out);
            let text = String::from_utf8(out.copy_to_bytes(out.remaining()).to_vec()).unwrap();
            assert!(framed.body.is_none() && framed.keeps_alive && !text.contains("transfer-encoding"), "{text}");
            text.contains("content-length: 5\r\n")
        };
        for (status, of_get, of_head) in
            [(101, false, false), (103, false, false), (204, false, false), (304, true, true)]
        {
            assert_eq!(told(status, false, Extent::Nothing), of_get, "{status}");
            assert_eq!(told(status, true, Extent::Nothing), of_head, "{status}");
        }
        assert!(told(200, true, Extent::Nothing));
        assert!(!told(204, true, Extent::Known(5)));
    }

    #[test]
    fn what_the_fields_say_of_the_body_is_not_believed_twice() {
        let stated = [("content-length", "5"), ("content-length", "5"), ("transfer-encoding", "gzip")];
        check(KEEPS, Extent::Known(5), &stated, "content-length: 5\r\n", Some(Length::Known(5)), true);
        check(KEEPS, Extent::Unknown, &stated, "content-length: 5\r\n", Some(Length::Known(5)), true);
        check(KEEPS, Extent::Nothing, &stated, "content-length: 0\r\n", None, true);
        let head = Asked { is_head: true, ..KEEPS };
        check(head, Extent::Nothing, &stated, "content-length: 5\r\n", None, true);
        check(head, Extent::Nothing, &[], "", None, true);
        check(head, Extent::Unknown, &[], "", None, true);
        check(head, Extent::Known(7), &[], "content-length: 7\r\n", None, true);
    }

    #[test]
    fn the_client_learns_whether_the_connection_goes_on() {
        let length = "content-length: 0\r\n";
        let ends = Asked { keeps_alive: false, ..KEEPS };
        let own = [("connection", "close")];
        check(ends, Extent::Nothing, &[], &format!("{length}connection: close\r\n"), None, false);
        check(ends, Extent::Nothing, &own, &format!("connection: close\r\n{length}"), None, false);
        check(KEEPS, Extent::Nothing, &own, &format!("connection: close\r\n{length}"), None, false);
        let old = Asked { version: Version::HTTP_10, ..KEEPS };
        check(old, Extent::Nothing, &[], &format!("{length}connection: keep-alive\r\n"), None, true);
        check(old, Extent::Nothing, &own, &format!("connection: close\r\n{length}"), None, false);
        let ends = Asked { keeps_alive: false, ..old };
        check(ends, Extent::Nothing, &[], &format!("{length}connection: close\r\n"), None, false);
    }
}
