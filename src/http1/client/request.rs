//! Writes the head of a request to an application.

use http_body::Body;

use crate::head::KnownName;
use crate::head::RequestHead;
use crate::head::write_line;
use crate::http1::grammar::BodyLength;
use crate::http1::grammar::WriteBuffer;

/// Writes the head of a request. The body decides its own length, whatever the fields say; `None`: no body.
pub fn write_head<B: Body>(head: &mut RequestHead, body: &B, out: &mut WriteBuffer) -> Option<BodyLength> {
    let length = body_length(head, body);
    head.fields.remove(KnownName::TRANSFER_ENCODING);
    if length.is_some() {
        head.fields.remove(KnownName::CONTENT_LENGTH);
    }
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

/// In bytes: the room for a head without its fields.
const ROOM: usize = 128;

#[cfg(test)]
mod tests {
    use bytes::Buf;
    use bytes::Bytes;
    use http::Method;
    use http_body_util::Empty;
    use http_body_util::Full;

    use super::*;
    use crate::head::Name;

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
