//! Lengths and transfer encodings: where a body ends.

use super::{Row, passes, passes_last, refused};

const FIVE: &str = "POST / HTTP/1.1\r\ncontent-length: 5\r\nhost: a\r\n\r\nhello";
const NONE: &str = "POST / HTTP/1.1\r\ncontent-length: 0\r\nhost: a\r\n\r\n";
const UNSTATED: &str = "POST / HTTP/1.1\r\nhost: a\r\n\r\n";
const CHUNKED: &str = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";

pub(crate) fn lengths() -> Vec<Row> {
    let five = |lines: &str| format!("POST / HTTP/1.1\r\nHost: a\r\n{lines}\r\nhello");
    vec![
        passes("a plain length", five("Content-Length: 5\r\n"), FIVE),
        passes("a length with space around", five("content-length: \t5 \t\r\n"), FIVE),
        passes("a length with zeros before", five("Content-Length: 0005\r\n"), FIVE),
        passes("one length twice", five("Content-Length: 5\r\nContent-Length: 5\r\n"), FIVE),
        passes("a length of nothing", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", NONE),
        passes("no length", "POST / HTTP/1.1\r\nHost: a\r\n\r\n", UNSTATED),
        passes(
            "a GET with a body",
            "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
            "GET / HTTP/1.1\r\ncontent-length: 5\r\nhost: a\r\n\r\nhello",
        ),
        passes(
            "a HEAD with a body",
            "HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
            "HEAD / HTTP/1.1\r\ncontent-length: 5\r\nhost: a\r\n\r\nhello",
        ),
        passes(
            "a request in a body",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 30\r\n\r\nGET /in HTTP/1.1\r\nHost: in\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: 30\r\nhost: a\r\n\r\nGET /in HTTP/1.1\r\nHost: in\r\n\r\n",
        ),
        refused("two lengths", five("Content-Length: 5\r\nContent-Length: 6\r\n"), 400),
        passes("a length and the same in other words", five("Content-Length: 5\r\nContent-Length: 05\r\n"), FIVE),
        refused("two lengths, the first nothing", five("Content-Length: 0\r\nContent-Length: 5\r\n"), 400),
        refused("a list of lengths", five("Content-Length: 5, 6\r\n"), 400),
        refused("a list of one length", five("Content-Length: 5, 5\r\n"), 400),
        refused("a length and a comma", five("Content-Length: 5,\r\n"), 400),
        refused("a length with a plus", five("Content-Length: +5\r\n"), 400),
        refused("a length below zero", five("Content-Length: -5\r\n"), 400),
        refused("a length that is minus nothing", five("Content-Length: -0\r\n"), 400),
        refused("a length in hexadecimal", five("Content-Length: 0x5\r\n"), 400),
        refused("a length with a fraction", five("Content-Length: 5.0\r\n"), 400),
        refused("a length with an exponent", five("Content-Length: 5e0\r\n"), 400),
        refused("a length in two words", five("Content-Length: 5 5\r\n"), 400),
        refused("a length with underscores", five("Content-Length: 0_5\r\n"), 400),
        refused("a length in quotes", five("Content-Length: \"5\"\r\n"), 400),
        refused("a length in letters", five("Content-Length: five\r\n"), 400),
        refused("a length with a unit", five("Content-Length: 5b\r\n"), 400),
        refused("an empty length", five("Content-Length:\r\n"), 400),
        refused("an empty length and a good one", five("Content-Length:\r\nContent-Length: 5\r\n"), 400),
        refused("a length with a form feed", five("Content-Length: \x0c5\r\n"), 400),
        refused("a length with a no-break space", five("Content-Length: \u{a0}5\r\n"), 400),
        refused("a length in other digits", five("Content-Length: \u{ff15}\r\n"), 400),
        refused("a length with a NUL", five("Content-Length: 5\0\r\n"), 400),
        refused("a length beyond 64 bits", five("Content-Length: 18446744073709551621\r\n"), 400),
        refused("a length of the last 64 bits", five("Content-Length: 18446744073709551615\r\n"), 431),
        passes(
            "a length of the bound",
            format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1024\r\n\r\n{}", "x".repeat(1024)),
            format!("POST / HTTP/1.1\r\ncontent-length: 1024\r\nhost: a\r\n\r\n{}", "x".repeat(1024)).leak(),
        ),
        refused("a length beyond the bound", five("Content-Length: 1025\r\n"), 413).open_ended(),
        refused("a length far beyond the bound", five("Content-Length: 9223372036854775807\r\n"), 413).open_ended(),
        refused("a space before the colon of a length", five("Content-Length : 5\r\n"), 400),
        refused("a folded length", five("Content-Length:\r\n 5\r\n"), 400),
        refused("a length that goes on in the next line", five("Content-Length: \r\n\t5\r\n"), 400),
        refused(
            "an HTTP/1.0 request with two lengths",
            "POST / HTTP/1.0\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
            400,
        ),
    ]
}

pub(crate) fn encodings() -> Vec<Row> {
    let chunked = |lines: &str| format!("POST / HTTP/1.1\r\nHost: a\r\n{lines}\r\n5\r\nhello\r\n0\r\n\r\n");
    let refused = |name, lines: &str| refused(name, chunked(lines), 400);
    let chunks_win = |name, lines: &str| passes_last(name, chunked(lines), CHUNKED);
    vec![
        passes("plain chunks", chunked("Transfer-Encoding: chunked\r\n"), CHUNKED),
        passes("chunked in capitals", chunked("TRANSFER-ENCODING: CHUNKED\r\n"), CHUNKED),
        passes("chunked with space around", chunked("Transfer-Encoding: \t chunked \t\r\n"), CHUNKED),
        chunks_win("a length, then chunks", "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"),
        chunks_win("chunks, then a length", "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n"),
        chunks_win("chunks and the right length", "Transfer-Encoding: chunked\r\nContent-Length: 15\r\n"),
        chunks_win("chunks and a length of nothing", "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n"),
        chunks_win("chunks and a length that is none", "Transfer-Encoding: chunked\r\nContent-Length: x\r\n"),
        chunks_win(
            "chunks and several lengths",
            "Content-Length: 1\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n",
        ),
        refused("chunked twice in a list", "Transfer-Encoding: chunked, chunked\r\n"),
        refused("chunked in two lines", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
        refused("chunked, then identity", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"),
        refused("identity, then chunked", "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n"),
        refused("an empty line of it, then chunked", "Transfer-Encoding:\r\nTransfer-Encoding: chunked\r\n"),
        refused("chunked, then an empty line of it", "Transfer-Encoding: chunked\r\nTransfer-Encoding:\r\n"),
        refused("identity", "Transfer-Encoding: identity\r\n"),
        refused("identity and a length", "Transfer-Encoding: identity\r\nContent-Length: 5\r\n"),
        refused("gzip, then chunked", "Transfer-Encoding: gzip, chunked\r\n"),
        refused("gzip", "Transfer-Encoding: gzip\r\n"),
        refused("gzip and a length", "Transfer-Encoding: gzip\r\nContent-Length: 5\r\n"),
        refused("chunked before identity", "Transfer-Encoding: chunked, identity\r\n"),
        refused("a cow", "Transfer-Encoding: cow\r\n"),
        refused("a cow, then chunked", "Transfer-Encoding: cow, chunked\r\n"),
        refused("chunked with a letter before", "Transfer-Encoding: xchunked\r\n"),
        refused("chunked with a letter behind", "Transfer-Encoding: chunkedx\r\n"),
        refused("half of chunked", "Transfer-Encoding: chunk\r\n"),
        refused("chunked in quotes", "Transfer-Encoding: \"chunked\"\r\n"),
        refused("chunked in single quotes", "Transfer-Encoding: 'chunked'\r\n"),
        refused("chunked with a parameter", "Transfer-Encoding: chunked;q=1\r\n"),
        refused("chunked with a semicolon", "Transfer-Encoding: chunked;\r\n"),
        refused("no encoding", "Transfer-Encoding:\r\n"),
        refused("a comma, then chunked", "Transfer-Encoding: ,chunked\r\n"),
        refused("chunked, then a comma", "Transfer-Encoding: chunked,\r\n"),
        refused("chunked behind a vertical tab", "Transfer-Encoding: \x0bchunked\r\n"),
        refused("chunked before a form feed", "Transfer-Encoding: chunked\x0c\r\n"),
        refused("chunked behind a NUL", "Transfer-Encoding: \0chunked\r\n"),
        refused("chunked behind a byte above 0x7f", "Transfer-Encoding: \u{a0}chunked\r\n"),
        refused("chunked with a long s", "Transfer-Encoding: chunked\u{17f}\r\n"),
        refused("chunked in angle brackets", "Transfer-Encoding: <chunked>\r\n"),
        refused("chunked behind a colon", "Transfer-Encoding: : chunked\r\n"),
        refused("a space before its colon", "Transfer-Encoding : chunked\r\n"),
        refused("a tab before its colon", "Transfer-Encoding\t: chunked\r\n"),
        refused("a space before its name", "X: y\r\n Transfer-Encoding: chunked\r\n"),
        refused("a folded encoding", "Transfer-Encoding:\r\n chunked\r\n"),
        refused("a folded name", "Transfer-Encoding\r\n : chunked\r\n"),
        refused("a CR before its name", "X: y\rTransfer-Encoding: chunked\r\n"),
        refused("a bare LF before its name", "X: y\nTransfer-Encoding: chunked\r\n"),
        super::refused(
            "chunks of HTTP/1.0",
            "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            400,
        ),
        super::refused(
            "chunks and a length of HTTP/1.0",
            "POST / HTTP/1.0\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            400,
        ),
        super::refused("an encoding of a GET", "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 400),
        passes(
            "a GET in chunks",
            "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            "GET / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        ),
        passes(
            "names that are almost framing",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer_Encoding: chunked\r\nContent_Length: 99\r\nTransfer.Encoding: x\r\nContent-Length: 5\r\n\r\nhello",
            FIVE,
        ),
    ]
}
