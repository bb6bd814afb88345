//! Writes the head of a request to an application.

use http::Request;
use http::Uri;
use http::header::CONTENT_LENGTH;
use http::header::TRANSFER_ENCODING;
use http_body::Body;

use crate::http1::grammar::BodyLength;
use crate::http1::grammar::WriteBuffer;
use crate::http1::grammar::fields;

/// Writes the head of a request. The body decides its own length, whatever the fields say; `None`: no body.
pub fn write_head<B: Body>(request: &Request<B>, out: &mut WriteBuffer) -> Option<BodyLength> {
    let out = out.small();
    out.reserve(USUAL_HEAD);
    out.extend_from_slice(request.method().as_str().as_bytes());
    out.push(b' ');
    write_target(request.uri(), out);
    out.extend_from_slice(b" HTTP/1.1\r\n");
    let length = body_length(request);
    for (name, value) in request.headers() {
        if *name != TRANSFER_ENCODING && (length.is_none() || *name != CONTENT_LENGTH) {
            fields::line(name, value.as_bytes(), out);
        }
    }
    match length {
        Some(BodyLength::Known(length)) => {
            fields::line(&CONTENT_LENGTH, itoa::Buffer::new().format(length).as_bytes(), out);
        }
        Some(BodyLength::Chunked | BodyLength::UntilClose) => fields::line(&TRANSFER_ENCODING, b"chunked", out),
        None => {}
    }
    out.extend_from_slice(b"\r\n");
    length
}

/// Writes the target in origin form. An absolute target may have a query and no path.
fn write_target(target: &Uri, out: &mut Vec<u8>) {
    let path = target.path();
    out.extend_from_slice(if path.is_empty() { "/" } else { path }.as_bytes());
    if let Some(query) = target.query() {
        out.push(b'?');
        out.extend_from_slice(query.as_bytes());
    }
}

fn body_length<B: Body>(request: &Request<B>) -> Option<BodyLength> {
    if request.body().is_end_stream() {
        return None;
    }
    let stated = || request.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok();
    Some(request.body().size_hint().exact().or_else(stated).map_or(BodyLength::Chunked, BodyLength::Known))
}

/// In bytes: most heads are shorter.
const USUAL_HEAD: usize = 1000;

#[cfg(test)]
mod tests {
    use bytes::Buf;
    use bytes::Bytes;
    use http_body_util::Empty;
    use http_body_util::Full;

    use super::*;

    #[track_caller]
    fn written<B: Body>(request: &Request<B>, expected: (&str, Option<BodyLength>)) {
        let mut out = WriteBuffer::default();
        let length = write_head(request, &mut out);
        let head = out.copy_to_bytes(out.remaining());
        assert_eq!((&*String::from_utf8_lossy(&head), length), expected);
    }

    #[test]
    fn the_body_alone_says_how_long_it_is() {
        let post = || Request::post("/a?b").header("host", "h").header("content-length", "7").header("x-a", "1");
        written(
            &post().header("transfer-encoding", "gzip").body(Full::<Bytes>::from("abc")).unwrap(),
            ("POST /a?b HTTP/1.1\r\nhost: h\r\nx-a: 1\r\ncontent-length: 3\r\n\r\n", Some(BodyLength::Known(3))),
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
            ("GET /?b HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n", Some(BodyLength::Chunked)),
        );
    }
}
