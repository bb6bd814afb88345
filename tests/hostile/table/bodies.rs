//! Chunks and trailers.

use super::{Row, breaks, passes};

/// The part of a body with the chunk `abc` that the application gets before the malformed part behind it.
const STARTED: &str = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n";

fn post(body: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{body}")
}

pub(crate) fn chunks() -> Vec<Row> {
    let broken = |name, behind: &str| breaks(name, post(&format!("3\r\nabc\r\n{behind}")), 400, STARTED);
    let arrives = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    vec![
        passes(
            "no chunk but the last",
            post("0\r\n\r\n"),
            "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
        passes("a last chunk of many zeros", post("3\r\nabc\r\n0000000\r\n\r\n"), arrives),
        passes("a size with zeros before", post("0003\r\nabc\r\n0\r\n\r\n"), arrives),
        passes(
            "a size in capitals",
            post("A\r\n0123456789\r\n0\r\n\r\n"),
            "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n",
        ),
        passes("an extension goes no further", post("3;a=b\r\nabc\r\n0;last\r\n\r\n"), arrives),
        passes("a quoted extension", post("3;a=\"b;c\"\r\nabc\r\n0\r\n\r\n"), arrives),
        broken("a space behind a size", "5 \r\nhello\r\n0\r\n\r\n"),
        passes(
            "a request within a chunk",
            post("1E\r\nGET /in HTTP/1.1\r\nHost: in\r\n\r\n\r\n0\r\n\r\n"),
            "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1E\r\nGET /in HTTP/1.1\r\nHost: in\r\n\r\n\r\n0\r\n\r\n",
        ),
        broken("a chunk that is longer than its size", "5\r\nhelloXX0\r\n\r\n"),
        broken("a chunk that is shorter than its size", "5\r\nhi\r\n0\r\n\r\n"),
        broken("a size that is a word", "zz\r\n"),
        broken("a size below zero", "-1\r\n\r\n"),
        broken("a size with a plus", "+5\r\nhello\r\n0\r\n\r\n"),
        broken("a size in two words", "5 5\r\nhello\r\n0\r\n\r\n"),
        broken("a size with 0x", "0x5\r\nhello\r\n0\r\n\r\n"),
        broken("a size with a point", "5.0\r\nhello\r\n0\r\n\r\n"),
        broken("a size with a comma", "5,\r\nhello\r\n0\r\n\r\n"),
        broken("a size with a NUL", "5\0\r\nhello\r\n0\r\n\r\n"),
        broken("a size with a form feed", "5\x0c\r\nhello\r\n0\r\n\r\n"),
        broken("no size", "\r\nhello\r\n0\r\n\r\n"),
        broken("a size behind a space", " 5\r\nhello\r\n0\r\n\r\n"),
        broken("a size of 64 bits and one more", "10000000000000005\r\nhello\r\n0\r\n\r\n"),
        broken("a size of seventeen digits", "fffffffffffffffff\r\n"),
        broken("bare LFs for line ends", "5\nhello\n0\n\n"),
        broken("a bare LF behind a size", "5\nhello\r\n0\r\n\r\n"),
        broken("a bare LF behind a chunk", "5\r\nhello\n0\r\n\r\n"),
        broken("a bare CR behind a size", "5\rhello\r\n0\r\n\r\n"),
        broken("a bare LF in an extension", "5;a\nhello\r\n0\r\n\r\n"),
        broken("a bare CR in an extension", "5;a\rb\r\nhello\r\n0\r\n\r\n"),
        broken("a bare LF behind the last size", "0\n\r\n"),
        breaks(
            "a body beyond its bound",
            post(&format!("3\r\nabc\r\n3FE\r\n{}\r\n0\r\n\r\n", "x".repeat(1022))),
            413,
            STARTED,
        ),
        broken("a size padded with blanks", &format!("5{}\r\nhello\r\n0\r\n\r\n", " \t".repeat(2000))),
        broken("a tab behind a size", "5\t\r\nhello\r\n0\r\n\r\n"),
        broken("a bare semicolon behind a size", "5;\r\nhello\r\n0\r\n\r\n"),
        broken("a blank before an extension", "5 ;a\r\nhello\r\n0\r\n\r\n"),
        broken("an extension that is no token", "5;a@b\r\nhello\r\n0\r\n\r\n"),
        broken("an extension of two words", "5;a b\r\nhello\r\n0\r\n\r\n"),
        broken("an extension that is a DEL", "5;\x7f\r\nhello\r\n0\r\n\r\n"),
        broken("an extension without its value", "5;a=\r\nhello\r\n0\r\n\r\n"),
        broken("a size line beyond 4 KiB", &format!("5{}\r\nhello\r\n0\r\n\r\n", " ".repeat(4096))),
        broken("a last size line beyond 4 KiB", &format!("0;{}\r\n\r\n", "x".repeat(4096))),
        broken("extensions beyond 16 KiB", &format!("1;{}\r\na\r\n", "x".repeat(3300)).repeat(5)),
        breaks(
            "an extension without an end",
            post(&format!("3\r\nabc\r\n5;{}\r\nhello\r\n0\r\n\r\n", "x".repeat(40_000))),
            400,
            STARTED,
        ),
    ]
}

pub(crate) fn trailers() -> Vec<Row> {
    let with = |trailer: &str, lines: &str| {
        format!("POST / HTTP/1.1\r\nHost: a\r\n{trailer}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n{lines}\r\n")
    };
    let broken = |name, lines: &str| breaks(name, with("", lines), 400, STARTED);
    vec![
        passes(
            "a trailer that was announced",
            with("Trailer: X-Sum\r\n", "X-Sum: 7\r\n"),
            "POST / HTTP/1.1\r\nhost: a\r\ntrailer: X-Sum\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx-sum: 7\r\n\r\n",
        ),
        passes(
            "a trailer that was not",
            with("", "X-Sum: 7\r\n"),
            "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx-sum: 7\r\n\r\n",
        ),
        passes(
            "trailers that may not be there",
            with(
                "Trailer: Host, Content-Length, Transfer-Encoding, Authorization, Cookie, X-Forwarded-For\r\n",
                "Host: b\r\nContent-Length: 9\r\nTransfer-Encoding: gzip\r\nAuthorization: x\r\nCookie: c=d\r\nX-Forwarded-For: 6.6.6.6\r\n",
            ),
            "POST / HTTP/1.1\r\nhost: a\r\ntrailer: Host, Content-Length, Transfer-Encoding, Authorization, Cookie, X-Forwarded-For\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        ),
        broken("a trailer without a colon", "no colon\r\n"),
        broken("a trailer without a name", ": x\r\n"),
        broken("a trailer with a space in its name", "X Y: z\r\n"),
        broken("a trailer with a space before the colon", "X : z\r\n"),
        broken("a folded trailer", "X: y\r\n z\r\n"),
        broken("a trailer with a NUL", "X: y\0z\r\n"),
        broken("a bare LF behind a trailer", "X: y\nZ: z\r\n"),
        broken("a bare LF for trailers", "\n\r\n"),
        broken("a bare CR in a trailer", "X: y\rz\r\n"),
        broken("trailers beyond their bound", &format!("X: {}\r\n", "x".repeat(40_000))),
    ]
}
