//! The rows: what is sent on stream 1, how the gateway answers, and what the application gets.

use super::{Arrives, Row};
use crate::frames::{END_HEADERS, END_STREAM, Fate, Field, block, data, frame, head};

pub(super) fn rows() -> Vec<Row> {
    let mut rows = pseudo_headers();
    rows.extend(fields());
    rows.extend(bodies());
    rows.extend(bad_frames());
    rows
}

pub(super) const GET: &[Field<'static>] =
    &[(b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"a"), (b":path", b"/")];
const POST: &[Field<'static>] =
    &[(b":method", b"POST"), (b":scheme", b"http"), (b":authority", b"a"), (b":path", b"/")];

const CONNECT: Field<'static> = (b":method", b"CONNECT");
const WEBSOCKET: Field<'static> = (b":protocol", b"websocket");

const PLAIN: &str = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
const CHUNKED: &str = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";

fn row(name: &'static str, first: Vec<u8>, fate: Fate, arrives: Arrives) -> Row {
    Row { name, first, then: Vec::new(), fate, arrives }
}

/// A head alone.
fn refused(name: &'static str, fate: Fate, fields: &[Field<'_>]) -> Row {
    row(name, head(1, true, fields), fate, Arrives::Nothing)
}

fn passes(name: &'static str, fields: &[Field<'_>], arrives: &'static str) -> Row {
    row(name, head(1, true, fields), Fate::Answered(200), Arrives::Exactly(arrives))
}

/// A plain GET with another value for one of its pseudo-headers.
fn with<'f>(name: &'f str, value: &'f [u8]) -> Vec<Field<'f>> {
    GET.iter().map(|field| if field.0 == name.as_bytes() { (field.0, value) } else { *field }).collect()
}

fn without(name: &str) -> Vec<Field<'static>> {
    GET.iter().filter(|field| field.0 != name.as_bytes()).copied().collect()
}

fn and<'f>(fields: &[Field<'f>], more: &[Field<'f>]) -> Vec<Field<'f>> {
    [fields, more].concat()
}

/// A head in frames of 16,000 bytes.
fn in_frames(block: &[u8]) -> Vec<u8> {
    let parts: Vec<&[u8]> = block.chunks(16_000).collect();
    let kind = |at: usize| if at == 0 { 1 } else { 9 };
    let flags = |at: usize| {
        let begins = if at == 0 { END_STREAM } else { 0 };
        let ends = if at + 1 == parts.len() { END_HEADERS } else { 0 };
        begins | ends
    };
    parts.iter().enumerate().flat_map(|(at, part)| frame(kind(at), flags(at), 1, part)).collect()
}

fn pseudo_headers() -> Vec<Row> {
    let malformed = |name, fields: &[Field<'_>]| refused(name, Fate::Answered(400), fields);
    let status = |name, status, fields: &[Field<'_>]| refused(name, Fate::Answered(status), fields);
    vec![
        passes("a plain request", GET, PLAIN),
        malformed("no method", &without(":method")),
        malformed("no path", &without(":path")),
        malformed("no scheme", &without(":scheme")),
        status("no authority", 400, &without(":authority")),
        passes("a Host for the authority", &and(&without(":authority"), &[(b"host", b"a")]), PLAIN),
        passes("a Host that is the authority", &and(GET, &[(b"host", b"a")]), PLAIN),
        status("a Host that is another", 400, &and(GET, &[(b"host", b"b")])),
        status("a Host twice", 400, &and(GET, &[(b"host", b"a"), (b"host", b"a")])),
        status("a Host that is none", 400, &and(GET, &[(b"host", b"a, b")])),
        malformed("two methods", &and(&[GET[0]], GET)),
        malformed("two paths", &and(GET, &[(b":path", b"/x")])),
        malformed("two schemes", &and(GET, &[(b":scheme", b"http")])),
        malformed("two authorities", &and(GET, &[(b":authority", b"b")])),
        malformed("a pseudo-header behind a field", &[GET[0], GET[1], (b"x", b"y"), GET[2], GET[3]]),
        malformed("an unknown pseudo-header", &and(GET, &[(b":x", b"y")])),
        malformed("a pseudo-header without a name", &and(GET, &[(b":", b"y")])),
        malformed("a status", &and(GET, &[(b":status", b"200")])),
        malformed("a path in capitals", &[GET[0], GET[1], GET[2], (b":Path", b"/")]),
        malformed("an empty method", &with(":method", b"")),
        malformed("a space in the method", &with(":method", b"GE T")),
        malformed("a request in the method", &with(":method", b"GET /in HTTP/1.1\r\nX: y")),
        status("CONNECT", 405, &[(b":method", b"CONNECT"), (b":authority", b"a:80")]),
        malformed("CONNECT with a path", &with(":method", b"CONNECT")),
        status(
            "CONNECT with an unsupported protocol",
            501,
            &and(&with(":method", b"CONNECT"), &[(b":protocol", b"x")]),
        ),
        malformed("CONNECT with two protocols", &and(&with(":method", b"CONNECT"), &[WEBSOCKET, WEBSOCKET])),
        malformed("connect in small letters with a protocol", &and(&with(":method", b"connect"), &[WEBSOCKET])),
        malformed("a WebSocket without a path", &[CONNECT, GET[1], GET[2], WEBSOCKET]),
        malformed("a WebSocket without a scheme", &[CONNECT, GET[2], GET[3], WEBSOCKET]),
        status("a WebSocket with a scheme of its own", 400, &[CONNECT, (b":scheme", b"ws"), GET[2], GET[3], WEBSOCKET]),
        malformed("a protocol without CONNECT", &and(GET, &[WEBSOCKET])),
        status("TRACE", 405, &with(":method", b"TRACE")),
        status("connect in small letters", 405, &with(":method", b"connect")),
        malformed("an empty path", &with(":path", b"")),
        malformed("a path without a slash", &with(":path", b"login")),
        malformed("an absolute path", &with(":path", b"http://b/")),
        malformed("a space in the path", &with(":path", b"/x y")),
        malformed("a request in the path", &with(":path", b"/ HTTP/1.1\r\nhost: b\r\n\r\nGET /in")),
        malformed("a NUL in the path", &with(":path", b"/\0")),
        status("a path beyond ASCII", 400, &with(":path", "/\u{e9}".as_bytes())),
        malformed("a path that is no UTF-8", &with(":path", b"/\xff")),
        status("an asterisk that is no OPTIONS", 400, &with(":path", b"*")),
        passes("two slashes are a path", &with(":path", b"//b/x"), "GET //b/x HTTP/1.1\r\nhost: a\r\n\r\n"),
        malformed("a question mark in the method", &with(":method", b"GET?")),
        passes(
            "quotes, angles and backticks",
            &with(":path", b"/<a>?q={\"a\":`1`}|^\\"),
            "GET /<a>?q={\"a\":`1`}|^\\ HTTP/1.1\r\nhost: a\r\n\r\n",
        ),
        passes("a fragment goes no further", &with(":path", b"/x#y"), "GET /x HTTP/1.1\r\nhost: a\r\n\r\n"),
        passes("https of a connection that has none", &with(":scheme", b"https"), PLAIN),
        status("ftp", 400, &with(":scheme", b"ftp")),
        status("an empty scheme", 400, &with(":scheme", b"")),
        malformed("a URL as scheme", &with(":scheme", b"http://b/?")),
        malformed("an empty authority", &with(":authority", b"")),
        status("a user in the authority", 400, &with(":authority", b"user@a")),
        status("a list in the authority", 400, &with(":authority", b"a,b")),
        malformed("a path in the authority", &with(":authority", b"a/b")),
        malformed("a space in the authority", &with(":authority", b"a b")),
        malformed("a line end in the authority", &with(":authority", b"a\r\nx: y")),
        status("a port above 65535", 400, &with(":authority", b"a:65536")),
        malformed("an authority beyond ASCII", &with(":authority", "a\u{e9}".as_bytes())),
    ]
}

fn fields() -> Vec<Row> {
    let malformed = |name, field: Field<'_>| refused(name, Fate::Answered(400), &and(GET, &[field]));
    let dropped = |name, field: Field<'_>| passes(name, &and(GET, &[field]), PLAIN);
    let many: Vec<Field<'_>> = vec![(b"x", b"y"); 60];
    let long = "y".repeat(30_000);
    let long = block(&and(GET, &[(b"x", long.as_bytes())]));
    let (begin, end) = long.split_at(16_000);
    vec![
        malformed("a name in capitals", (b"X-Up", b"y")),
        malformed("a quote in a name", (b"x\"y", b"z")),
        malformed("a blank before a value", (b"x", b" y")),
        malformed("a blank behind a value", (b"x", b"y\t")),
        malformed("Host in capitals", (b"Host", b"a")),
        malformed("no name", (b"", b"y")),
        malformed("a space in a name", (b"x y", b"z")),
        malformed("a colon in a name", (b"x:y", b"z")),
        malformed("a line end in a name", (b"x: y\r\nz", b"z")),
        malformed("a NUL in a name", (b"x\0", b"z")),
        malformed("a LF in a value", (b"x", b"y\nz: z")),
        malformed("a CR in a value", (b"x", b"y\rz")),
        malformed("a request in a value", (b"x", b"y\r\n\r\nGET /in HTTP/1.1\r\nhost: b\r\n\r\n")),
        malformed("a NUL in a value", (b"x", b"y\0z")),
        malformed("a Connection", (b"connection", b"close")),
        malformed("a Keep-Alive", (b"keep-alive", b"5")),
        malformed("a Proxy-Connection", (b"proxy-connection", b"close")),
        malformed("an upgrade", (b"upgrade", b"websocket")),
        malformed("a Transfer-Encoding", (b"transfer-encoding", b"chunked")),
        malformed("another TE", (b"te", b"gzip")),
        passes(
            "a TE that wants trailers",
            &and(GET, &[(b"te", b"trailers")]),
            "GET / HTTP/1.1\r\nconnection: te\r\nhost: a\r\nte: trailers\r\n\r\n",
        ),
        dropped("settings for an upgrade", (b"http2-settings", b"AAMAAABk")),
        dropped("X-Forwarded-For", (b"x-forwarded-for", b"6.6.6.6")),
        dropped("X_Forwarded_For", (b"x_forwarded_for", b"6.6.6.6")),
        dropped("Content_Length", (b"content_length", b"5")),
        dropped("Transfer_Encoding", (b"transfer_encoding", b"chunked")),
        dropped("X-Original-URL", (b"x-original-url", b"/admin")),
        passes(
            "cookies in crumbs",
            &and(GET, &[(b"cookie", b"a=b"), (b"cookie", b"c=d")]),
            "GET / HTTP/1.1\r\ncookie: a=b; c=d\r\nhost: a\r\n\r\n",
        ),
        refused("60 fields", Fate::Answered(431), &and(GET, &many)),
        row(
            "a field of 30,000 bytes",
            [frame(1, END_STREAM, 1, begin), frame(9, END_HEADERS, 1, end)].concat(),
            Fate::Answered(431),
            Arrives::Nothing,
        ),
        row(
            "a field of 60,000 bytes",
            in_frames(&block(&and(GET, &[(b"x", "y".repeat(60_000).as_bytes())]))),
            Fate::Answered(431),
            Arrives::Nothing,
        ),
        row(
            "a name of 60,000 bytes",
            in_frames(&block(&and(GET, &[("y".repeat(60_000).as_bytes(), b"x")]))),
            Fate::Answered(431),
            Arrives::Nothing,
        ),
        row(
            "a field of 70,000 bytes, too long for an answer",
            in_frames(&block(&and(GET, &[(b"x", "y".repeat(70_000).as_bytes())]))),
            Fate::Ended,
            Arrives::Nothing,
        ),
        refused("another expectation", Fate::Answered(417), &and(GET, &[(b"expect", b"x")])),
    ]
}

fn bodies() -> Vec<Row> {
    let post = |more: &[Field<'_>], frames: &[Vec<u8>]| [head(1, false, &and(POST, more)), frames.concat()].concat();
    let cut = |name, more: &[Field<'_>], then, fate, start| Row {
        name,
        first: post(more, &[]),
        then,
        fate,
        arrives: Arrives::Cut(start),
    };
    let breaks = |name, more: &[Field<'_>], then, start| cut(name, more, then, Fate::Reset, start);
    let passes = |name, sent, arrives| row(name, sent, Fate::Answered(200), Arrives::Exactly(arrives));
    let malformed = |name, sent| row(name, sent, Fate::Answered(400), Arrives::Nothing);
    let length: Field<'_> = (b"content-length", b"5");
    let five = "POST / HTTP/1.1\r\ncontent-length: 5\r\nhost: a\r\n\r\n";
    vec![
        passes(
            "a body of its length",
            post(&[length], &[data(1, true, b"hello")]),
            "POST / HTTP/1.1\r\ncontent-length: 5\r\nhost: a\r\n\r\nhello",
        ),
        passes(
            "a body without a length",
            post(&[], &[data(1, true, b"hello")]),
            "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        ),
        passes(
            "a request in a body",
            post(&[], &[data(1, true, b"0\r\n\r\nGET /in HTTP/1.1\r\n")]),
            "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n17\r\n0\r\n\r\nGET /in HTTP/1.1\r\n\r\n0\r\n\r\n",
        ),
        passes(
            "an empty body",
            post(&[], &[data(1, true, b"")]),
            "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
        breaks("a body shorter than its length", &[length], data(1, true, b"hi"), five),
        breaks("a body longer than its length", &[length], data(1, true, b"hello!!"), five),
        // What is forwarded while it comes is whole when the length that was stated is there.
        malformed("no body where there is a length", head(1, true, &and(POST, &[length]))),
        malformed("a length that is no number", post(&[(b"content-length", b"x")], &[])),
        malformed("a length with a plus", post(&[(b"content-length", b"+5")], &[])),
        malformed("a list of lengths", post(&[(b"content-length", b"5, 5")], &[])),
        malformed("two lengths", post(&[length, (b"content-length", b"6")], &[])),
        passes(
            "a trailer that was announced",
            post(&[(b"trailer", b"x-sum")], &[data(1, false, b"ok"), head(1, true, &[(b"x-sum", b"7")])]),
            "POST / HTTP/1.1\r\nhost: a\r\ntrailer: x-sum\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx-sum: 7\r\n\r\n",
        ),
        passes(
            "trailers that may not be there",
            post(
                &[(b"trailer", b"content-length, host, x-forwarded-for")],
                &[
                    data(1, false, b"ok"),
                    head(1, true, &[(b"content-length", b"9"), (b"host", b"b"), (b"x-forwarded-for", b"6.6.6.6")]),
                ],
            ),
            "POST / HTTP/1.1\r\nhost: a\r\ntrailer: content-length, host, x-forwarded-for\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        ),
        breaks("a pseudo-header in trailers", &[], head(1, true, &[(b":path", b"/x")]), CHUNKED),
        breaks("capitals in trailers", &[], head(1, true, &[(b"X", b"y")]), CHUNKED),
        breaks("a line end in trailers", &[], head(1, true, &[(b"x", b"y\r\nz: z")]), CHUNKED),
        breaks("trailers that do not end the stream", &[], head(1, false, &[(b"x", b"y")]), CHUNKED),
    ]
}

fn bad_frames() -> Vec<Row> {
    let ended = |name, frames: Vec<u8>| row(name, frames, Fate::Ended, Arrives::Nothing);
    let started = |flags, payload: &[u8]| frame(1, flags, 1, payload);
    let all = END_HEADERS | END_STREAM;
    let fields = block(GET);
    let (begin, end) = fields.split_at(10);
    vec![
        row(
            "a head in two frames",
            [started(END_STREAM, begin), frame(9, END_HEADERS, 1, end)].concat(),
            Fate::Answered(200),
            Arrives::Exactly(PLAIN),
        ),
        row(
            "a frame of an unknown type",
            [frame(0xfa, 0xff, 1, b"x"), head(1, true, GET)].concat(),
            Fate::Answered(200),
            Arrives::Exactly(PLAIN),
        ),
        ended("data before a head", data(1, true, b"hello")),
        ended("a head of the connection", frame(1, all, 0, &fields)),
        ended("a stream of the server's", frame(1, all, 2, &fields)),
        ended("a continuation of nothing", frame(9, END_HEADERS, 1, &fields)),
        ended("a head that is interrupted", [started(END_STREAM, begin), frame(6, 0, 0, &[0; 8])].concat()),
        ended("a head that goes on elsewhere", [started(END_STREAM, begin), frame(9, END_HEADERS, 3, end)].concat()),
        ended("settings of five bytes", frame(4, 0, 0, &[0; 5])),
        ended("settings of a stream", frame(4, 0, 1, b"")),
        ended("a ping of seven bytes", frame(6, 0, 0, &[0; 7])),
        ended("a window that grows by nothing", frame(8, 0, 0, &[0; 4])),
        ended("a window beyond its bound", frame(8, 0, 0, &[0x7f, 0xff, 0xff, 0xff])),
        ended("a reset of a stream that never was", frame(3, 0, 1, &[0; 4])),
        ended("a promise of a client", frame(5, END_HEADERS, 1, &[0; 8])),
        ended("padding longer than the frame", started(all | 8, &[255, 0, 0])),
        ended("a frame beyond its bound", data(1, true, &[0; 20_000])),
        ended("a field that is in no table", started(all, &[0xff, 0xff, 0x7f])),
        ended("a field of index 0", started(all, &[0x80])),
        ended("a field that is cut short", started(all, &fields[..fields.len() - 1])),
        ended("a length of a field beyond all bounds", started(all, &[0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f])),
        ended("a table beyond its bound", started(all, &[0x3f, 0xff, 0xff, 0x7f])),
        ended("Huffman's code with too much behind it", started(all, &[0, 0x82, 0xff, 0xff, 0x81, 0xff])),
    ]
}
