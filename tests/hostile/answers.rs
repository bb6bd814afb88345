//! Hostile answers: what the client gets, whether its connection stays open, and that bytes behind an answer never
//! become the answer to another request.

use std::time::Duration;

use crate::support::{Gateway, Origin, RawClient};

/// What an application says to one request.
struct Row {
    name: &'static str,
    method: &'static str,
    said: Vec<u8>,
    /// The application closes after this answer.
    closes: bool,
    got: Got,
}

/// What the client gets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Got {
    /// This status and this body, and the connection stays open.
    Whole(u16, &'static str),
    /// This status and this much of the body, which is seen to be cut short.
    Cut(u16, &'static str),
    /// An answer of the gateway's own, and the connection stays open.
    Instead(u16),
}

const NEXT: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext";

#[test]
fn each_hostile_answer_reaches_its_client_as_one_answer_or_as_none() {
    let origin = Origin::scripted(|mut exchange| {
        let rows = rows();
        while let Some(received) = exchange.request() {
            let number = received.target.strip_prefix("/row/").and_then(|number| number.parse::<usize>().ok());
            let Some(row) = number.and_then(|number| rows.get(number)) else {
                exchange.write(NEXT);
                continue;
            };
            if !exchange.write(&row.said) || row.closes {
                return;
            }
        }
    });
    let gateway = Gateway::start(format!(
        "upstream: app\nupstreams:\n  app: {{servers: [{}], timeouts: {{response: 400ms}}}}",
        origin.url()
    ));
    let rows = rows();
    assert!(rows.len() >= 100, "{}", rows.len());
    let wrong: Vec<String> =
        rows.iter().enumerate().filter_map(|(number, row)| meets(&gateway, number, row).err()).collect();
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
}

fn meets(gateway: &Gateway, number: usize, row: &Row) -> Result<(), String> {
    let mut client = gateway.connect();
    let target = format!("/row/{number}");
    client.send(gateway.request(row.method, &target).bytes());
    let Some(answer) = client.try_response(row.method) else {
        return Err(format!("{}: no answer", row.name));
    };
    let goes_on = next_is_next(gateway, &mut client);
    // The next request may use the connection to the application that the hostile answer was on.
    let others = (0..3).all(|_| next_is_next(gateway, &mut gateway.connect()));
    let text = answer.text();
    let (status, body, whole, on) = match row.got {
        Got::Whole(status, body) => (status, Some(body), true, true),
        Got::Cut(status, body) => (status, Some(body), false, false),
        Got::Instead(status) => (status, None, true, true),
    };
    let is_body = body.is_none_or(|body| body == text);
    if others && is_body && (answer.status, answer.whole, goes_on) == (status, whole, on) {
        return Ok(());
    }
    let Row { name, got, .. } = row;
    Err(format!(
        "{name}: {} {:?}, whole: {}, goes on: {goes_on}, others: {others}; expected {got:?}",
        answer.status, text, answer.whole
    ))
}

fn next_is_next(gateway: &Gateway, client: &mut RawClient) -> bool {
    if client.ends_within(Duration::from_millis(1)) {
        return false;
    }
    client.send(gateway.get("/next").bytes());
    let answer = client.try_response("GET");
    answer.is_some_and(|answer| answer.status == 200 && answer.text() == "next")
}

fn stays(name: &'static str, said: impl AsRef<[u8]>, got: Got) -> Row {
    Row { name, method: "GET", said: said.as_ref().to_vec(), closes: false, got }
}

fn closes(name: &'static str, said: impl AsRef<[u8]>, got: Got) -> Row {
    Row { closes: true, ..stays(name, said, got) }
}

/// An answer to a HEAD.
fn to_head(name: &'static str, said: impl AsRef<[u8]>, got: Got) -> Row {
    Row { method: "HEAD", ..stays(name, said, got) }
}

fn rows() -> Vec<Row> {
    let mut rows = heads();
    rows.extend(codings());
    rows.extend(bodies());
    rows.extend(chunk_lines());
    rows.extend(what_follows());
    rows
}

/// Heads that are none, or almost none.
fn heads() -> Vec<Row> {
    let nonsense = |name, said: &str| closes(name, said, Got::Instead(502));
    let fields = |lines: &str| format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: 2\r\n\r\nok");
    vec![
        stays("a plain answer", fields(""), Got::Whole(200, "ok")),
        stays("bare LFs throughout", fields("").replace("\r\n", "\n"), Got::Whole(200, "ok")),
        nonsense("nothing", ""),
        nonsense("a greeting", "220 mail.example ESMTP\r\n"),
        nonsense("half a status line", "HTTP/1.1 20"),
        nonsense("half a head", "HTTP/1.1 200 OK\r\nContent-Le"),
        nonsense("a body without a head", "<html>hello</html>\r\n\r\n"),
        nonsense("another version", "HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok"),
        nonsense("no version", "200 OK\r\nContent-Length: 2\r\n\r\nok"),
        nonsense("a version in small letters", "http/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
        nonsense("a status of two digits", "HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\nok"),
        nonsense("a status of four digits", "HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\nok"),
        nonsense("a status that is a word", "HTTP/1.1 OK\r\nContent-Length: 2\r\n\r\nok"),
        nonsense("a status below 100", "HTTP/1.1 099 No\r\nContent-Length: 2\r\n\r\nok"),
        nonsense("a request", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        stays("a folded field", fields("X: y\r\n z\r\n"), Got::Whole(200, "ok")),
        stays("a control character in a value", fields("X: y\x01z\r\n"), Got::Whole(200, "ok")),
        nonsense("a folded field with a line of blanks", &fields("X: y\r\n \r\nY: z\r\n")),
        nonsense("a first field that is folded", &fields(" X: y\r\n")),
        nonsense("a folded length", "HTTP/1.1 200 OK\r\nContent-Length:\r\n 2\r\n\r\nok"),
        nonsense("a control character in a length", "HTTP/1.1 200 OK\r\nContent-Length: \x0b2\r\n\r\nok"),
        nonsense("a folded coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
        nonsense("a field without a colon", &fields("no colon\r\n")),
        nonsense("a space in a name", &fields("X Y: z\r\n")),
        nonsense("a space before a colon", &fields("X : y\r\n")),
        nonsense("a NUL in a value", &fields("X: y\0z\r\n")),
        nonsense("a CR in a value", &fields("X: y\rz\r\n")),
        nonsense("1,001 fields", &fields(&"X: y\r\n".repeat(1000))),
        nonsense("a field of 110,000 bytes", &fields(&format!("X: {}\r\n", "y".repeat(110_000)))),
        nonsense("a field of 1,000,000 bytes", &fields(&format!("X: {}\r\n", "y".repeat(1_000_000)))),
        stays("1,000 fields", fields(&"X: y\r\n".repeat(999)), Got::Whole(200, "ok")),
        stays("a field of 100,000 bytes", fields(&format!("X: {}\r\n", "y".repeat(100_000))), Got::Whole(200, "ok")),
        stays(
            "forty cookies of 400 bytes",
            fields(&format!("Set-Cookie: a={}\r\n", "b".repeat(398)).repeat(40)),
            Got::Whole(200, "ok"),
        ),
        nonsense("nothing but informational answers, then the end", "HTTP/1.1 103 Early Hints\r\n\r\n"),
        nonsense(
            "a protocol switch without a request for it",
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        ),
        stays("a head that never ends", "HTTP/1.1 200 OK\r\nX: y\r\n", Got::Instead(504)),
        stays("silence", "", Got::Instead(504)),
        stays("an unknown status", "HTTP/1.1 799 Odd\r\nContent-Length: 2\r\n\r\nok", Got::Whole(799, "ok")),
        stays("no reason", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", Got::Whole(200, "ok")),
        stays("a reason beyond ASCII", "HTTP/1.1 200 \u{e9}\r\nContent-Length: 2\r\n\r\nok", Got::Whole(200, "ok")),
        stays(
            "informational answers before",
            format!("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nX: y\r\n\r\n{}", fields("")),
            Got::Whole(200, "ok"),
        ),
        stays(
            "fields of one hop",
            fields("Connection: x-a, content-length\r\nX-A: 1\r\nKeep-Alive: x\r\n"),
            Got::Whole(200, "ok"),
        ),
        closes("a connection that closes", fields("Connection: close\r\n"), Got::Whole(200, "ok")),
        stays("an answer of HTTP/1.2", "HTTP/1.2 200 OK\r\nContent-Length: 2\r\n\r\nok", Got::Whole(200, "ok")),
        stays(
            "a thousand informational answers before",
            format!("{}{}", "HTTP/1.1 103 Early\r\n\r\n".repeat(1000), fields("")),
            Got::Whole(200, "ok"),
        ),
        closes("an answer of HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", Got::Whole(200, "ok")),
    ]
}

/// Transfer codings: one plain `chunked`, or nothing of the answer.
fn codings() -> Vec<Row> {
    let coded = |lines: &str| format!("HTTP/1.1 200 OK\r\n{lines}\r\n2\r\nok\r\n0\r\n\r\n");
    let nonsense = |name, lines: &str| closes(name, coded(lines), Got::Instead(502));
    let chunked = |name, lines: &str| stays(name, coded(lines), Got::Whole(200, "ok"));
    let old = |lines: &str| format!("HTTP/1.0 200 OK\r\n{lines}\r\nok");
    vec![
        nonsense("gzip", "Transfer-Encoding: gzip\r\n"),
        nonsense("gzip and a length", "Transfer-Encoding: gzip\r\nContent-Length: 12\r\n"),
        nonsense("gzip in capitals", "Transfer-Encoding: GZIP\r\n"),
        nonsense("gzip in chunks", "Transfer-Encoding: gzip, chunked\r\n"),
        nonsense("gzip in chunks, in two lines", "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"),
        nonsense("chunks in gzip", "Transfer-Encoding: chunked, gzip\r\n"),
        nonsense("chunks in gzip, in two lines", "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n"),
        nonsense("chunks in chunks", "Transfer-Encoding: chunked, chunked\r\n"),
        nonsense("chunks in chunks, in two lines", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
        nonsense("chunks with a parameter", "Transfer-Encoding: chunked;q=1\r\n"),
        nonsense("chunks in quotes", "Transfer-Encoding: \"chunked\"\r\n"),
        nonsense("chunks and a word that ends in identity", "Transfer-Encoding: x-identity, chunked\r\n"),
        nonsense("an unknown coding", "Transfer-Encoding: xchunked\r\n"),
        nonsense("a vertical tab before chunked", "Transfer-Encoding: \x0bchunked\r\n"),
        nonsense("identity around gzip", "Transfer-Encoding: identity, gzip, identity\r\n"),
        chunked("chunks in capitals", "Transfer-Encoding: CHUNKED\r\n"),
        chunked("identity and chunks", "Transfer-Encoding: identity, chunked\r\n"),
        chunked("chunks and Identity in two lines", "Transfer-Encoding: Chunked\r\nTransfer-Encoding: Identity\r\n"),
        chunked("chunks among nothing", "Transfer-Encoding: , ,chunked,\r\nTransfer-Encoding:\r\n"),
        stays(
            "identity and a length",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nok",
            Got::Whole(200, "ok"),
        ),
        closes(
            "identity until the connection ends",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nok",
            Got::Whole(200, "ok"),
        ),
        closes("chunks of HTTP/1.0 that are none", old("Transfer-Encoding: chunked\r\n"), Got::Cut(200, "")),
        closes(
            "chunks of HTTP/1.0",
            old("Transfer-Encoding: chunked\r\n").replace("\r\nok", "\r\n2\r\nok\r\n0\r\n\r\n"),
            Got::Whole(200, "ok"),
        ),
        closes("gzip of HTTP/1.0", old("Transfer-Encoding: gzip\r\nContent-Length: 2\r\n"), Got::Instead(502)),
        closes("identity of HTTP/1.0", old("Transfer-Encoding: identity\r\n"), Got::Whole(200, "ok")),
        to_head("HEAD with gzip", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", Got::Instead(502)),
        stays("304 with gzip", "HTTP/1.1 304 No\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", Got::Instead(502)),
        stays("204 with gzip", "HTTP/1.1 204 No\r\nTransfer-Encoding: gzip\r\n\r\n", Got::Instead(502)),
    ]
}

/// What stands beside the sizes of chunks.
fn chunk_lines() -> Vec<Row> {
    let chunked = |body: &str| format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}0\r\n\r\n");
    let extended = |length: usize| format!("1;{}\r\na\r\n", "x".repeat(length - 1));
    let digits = "0123456789".repeat(1000);
    let signed = format!("2710;chunk-signature={}\r\n{digits}\r\n", "5".repeat(64));
    vec![
        stays("9,000 padded chunks", chunked(&"1   \r\na\r\n".repeat(9000)), Got::Whole(200, leak("a".repeat(9000)))),
        stays("a size padded with tabs", chunked("1 \t \t\r\na\r\n"), Got::Whole(200, "a")),
        stays("a size line of 4 KiB", chunked(&format!("1{}\r\na\r\n", " ".repeat(4095))), Got::Whole(200, "a")),
        closes(
            "a size line beyond 4 KiB",
            chunked(&format!("1\r\na\r\n1{}\r\nb\r\n", " ".repeat(4096))),
            Got::Cut(200, "a"),
        ),
        closes("an extension beyond 4 KiB", chunked(&format!("1\r\na\r\n{}", extended(4096))), Got::Cut(200, "a")),
        stays("extensions of 16 KiB", chunked(&extended(2048).repeat(8)), Got::Whole(200, "aaaaaaaa")),
        closes("extensions beyond 16 KiB", chunked(&extended(2050).repeat(8)), Got::Cut(200, "aaaaaaa")),
        stays("400 signed chunks", chunked(&signed.repeat(400)), Got::Whole(200, leak(digits.repeat(400)))),
    ]
}

fn leak(text: String) -> &'static str {
    text.leak()
}

/// Bodies that are not what their head says.
fn bodies() -> Vec<Row> {
    let length = |lines: &str, body: &str| format!("HTTP/1.1 200 OK\r\n{lines}\r\n{body}");
    let chunked = |body: &str| format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
    let nonsense = |name, said: String| closes(name, said, Got::Instead(502));
    vec![
        nonsense("two lengths", length("Content-Length: 2\r\nContent-Length: 3\r\n", "oki")),
        nonsense("a length that is a word", length("Content-Length: two\r\n", "ok")),
        nonsense("a length below zero", length("Content-Length: -2\r\n", "ok")),
        nonsense("a length with a plus", length("Content-Length: +2\r\n", "ok")),
        nonsense("a list of lengths that differ", length("Content-Length: 2, 3\r\n", "oki")),
        stays("a list of one length", length("Content-Length: 2, 2\r\n", "ok"), Got::Whole(200, "ok")),
        nonsense("an empty length", length("Content-Length:\r\n", "ok")),
        nonsense("a length beyond 64 bits", length("Content-Length: 18446744073709551618\r\n", "ok")),
        stays("one length twice", length("Content-Length: 2\r\nContent-Length: 2\r\n", "ok"), Got::Whole(200, "ok")),
        stays(
            "a length and chunks",
            length("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", "2\r\nok\r\n0\r\n\r\n"),
            Got::Whole(200, "ok"),
        ),
        closes("until the connection ends", length("", "until the end"), Got::Whole(200, "until the end")),
        closes("a body shorter than its length", length("Content-Length: 10\r\n", "short"), Got::Cut(200, "short")),
        stays("a body that stalls", length("Content-Length: 10\r\n", "short"), Got::Cut(200, "short")),
        closes("chunks without an end", chunked("3\r\nabc\r\n"), Got::Cut(200, "abc")),
        closes("half a chunk", chunked("9\r\nabc"), Got::Cut(200, "abc")),
        closes("a chunk size that is a word", chunked("3\r\nabc\r\nzz\r\n"), Got::Cut(200, "abc")),
        closes("a chunk longer than its size", chunked("3\r\nabcdef\r\n0\r\n\r\n"), Got::Cut(200, "abc")),
        closes("a bare LF behind a chunk size", chunked("3\r\nabc\r\n3\ndef\r\n0\r\n\r\n"), Got::Cut(200, "abc")),
        closes(
            "a chunk size of seventeen digits",
            chunked("3\r\nabc\r\n10000000000000003\r\ndef\r\n0\r\n\r\n"),
            Got::Cut(200, "abc"),
        ),
        closes("a trailer that is none", chunked("3\r\nabc\r\n0\r\nno colon\r\n\r\n"), Got::Cut(200, "abc")),
        stays(
            "trailers that may not be there",
            chunked("3\r\nabc\r\n0\r\nContent-Length: 9\r\nSet-Cookie: a=b\r\n\r\n"),
            Got::Whole(200, "abc"),
        ),
        stays("204 with a length", "HTTP/1.1 204 No\r\nContent-Length: 0\r\n\r\n", Got::Whole(204, "")),
        stays("304 with a length", "HTTP/1.1 304 No\r\nContent-Length: 9\r\n\r\n", Got::Whole(304, "")),
        to_head("HEAD with a length", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", Got::Whole(200, "")),
        to_head("HEAD in chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Got::Whole(200, "")),
    ]
}

/// Bytes behind a complete answer: they belong to no request.
fn what_follows() -> Vec<Row> {
    let evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
    vec![
        stays(
            "a second answer",
            format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok{evil}"),
            Got::Whole(200, "ok"),
        ),
        stays(
            "a second answer behind chunks",
            format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n{evil}"),
            Got::Whole(200, "ok"),
        ),
        stays(
            "a body longer than its length",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more",
            Got::Whole(200, "ok"),
        ),
        stays("a second answer behind 204", format!("HTTP/1.1 204 No\r\n\r\n{evil}"), Got::Whole(204, "")),
        stays("a body behind 204", "HTTP/1.1 204 No\r\nContent-Length: 4\r\n\r\nevil", Got::Whole(204, "")),
        stays("a second answer behind 304", format!("HTTP/1.1 304 No\r\n\r\n{evil}"), Got::Whole(304, "")),
        to_head("a body behind a HEAD", evil, Got::Whole(200, "")),
        to_head(
            "a second answer behind a HEAD",
            format!("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{evil}"),
            Got::Whole(200, ""),
        ),
        closes(
            "an answer, then nonsense",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok\0\0\r\n\r\n",
            Got::Whole(200, "ok"),
        ),
    ]
}
