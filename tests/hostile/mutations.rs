//! Almost correct requests: built from a grammar of HTTP/1.1 with its classic mistakes, then damaged at random. The
//! same seed makes the same bytes.

use fastrand::Rng;

/// The bytes of one to three requests on one connection. Each bears the mark in a field of its own.
pub(crate) fn connection(rng: &mut Rng, mark: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in 0..rng.u8(1..=3) {
        bytes.extend_from_slice(&request(rng, mark, number));
    }
    if rng.u8(..100) < 35 {
        for _ in 0..rng.u8(1..=3) {
            damage(rng, &mut bytes);
        }
    }
    bytes
}

fn request(rng: &mut Rng, mark: &str, number: u8) -> Vec<u8> {
    let (framing, body) = body(rng);
    let mut fields = vec![format!("X-Mark: {mark}")];
    fields.extend(mostly(rng, &["Host: a"], HOSTS).map(str::to_owned));
    fields.extend(framing);
    for _ in 0..rng.u8(..3) {
        fields.push(pick(rng, FIELDS).to_owned());
    }
    rng.shuffle(&mut fields);
    let method = usual(rng, 85, &["GET", "POST", "POST", "PUT", "OPTIONS", "HEAD"], METHODS);
    let target = usual(rng, 85, &["/t", "/t?a=b", "//t/../u", "/%2e%2e/t"], TARGETS);
    let version = usual(rng, 93, &["HTTP/1.1"], VERSIONS);
    let space = usual(rng, 98, &[" "], &["  ", "\t", "\x0b"]);
    let mut head = format!("{method}{space}{target}{space}{version}");
    if target.starts_with('/') {
        // Which of the connection it is.
        head = head.replacen(target, &format!("/{number}{target}"), 1);
    }
    for field in fields {
        head.push_str(line_end(rng));
        let field = if rng.u8(..100) < 96 { field } else { field.replacen(": ", pick(rng, COLONS), 1) };
        head.push_str(&field);
    }
    head.push_str(line_end(rng));
    head.push_str(line_end(rng));
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(&body);
    bytes
}

/// Fields that frame a body, and a body that they may frame.
fn body(rng: &mut Rng) -> (Vec<String>, Vec<u8>) {
    let content = pick(rng, &[&b"hello"[..], b"", b"0\r\n\r\n", SMUGGLED, b"a=b&c=d"]);
    let length = format!("Content-Length: {}", content.len());
    let chunks = || chunked(content);
    match rng.u8(..100) {
        0..30 => (Vec::new(), Vec::new()),
        30..55 => (vec![length], content.to_vec()),
        55..75 => (vec!["Transfer-Encoding: chunked".to_owned()], chunks()),
        75..80 => (vec!["Transfer-Encoding: chunked".to_owned(), length], chunks()),
        80..85 => (vec![pick(rng, LENGTHS).to_owned(), length], content.to_vec()),
        85..90 => (vec![pick(rng, ENCODINGS).to_owned()], chunks()),
        90..94 => (vec![pick(rng, ENCODINGS).to_owned(), length], content.to_vec()),
        94..97 => (vec!["Transfer-Encoding: chunked".to_owned()], pick(rng, CHUNKS).as_bytes().to_vec()),
        _ => (vec![pick(rng, LENGTHS).to_owned()], content.to_vec()),
    }
}

fn chunked(content: &[u8]) -> Vec<u8> {
    if content.is_empty() {
        return b"0\r\n\r\n".to_vec();
    }
    [format!("{:x}\r\n", content.len()).as_bytes(), content, b"\r\n0\r\n\r\n"].concat()
}

/// Puts in, takes out or repeats a byte or a few, where they may hurt.
fn damage(rng: &mut Rng, bytes: &mut Vec<u8>) {
    if bytes.is_empty() {
        return;
    }
    let at = rng.usize(..bytes.len());
    match rng.u8(..5) {
        0 => bytes.insert(at, pick(rng, BYTES)),
        1 => bytes[at] = pick(rng, BYTES),
        2 => drop(bytes.remove(at)),
        3 => bytes.truncate(at),
        _ => {
            let end = (at + rng.usize(1..20)).min(bytes.len());
            let again = bytes[at..end].to_vec();
            bytes.splice(at..at, again);
        }
    }
}

fn pick<T: Copy>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.usize(..choices.len())]
}

/// One of the usual ones so many times in a hundred, otherwise one of the odd ones.
fn usual<'c>(rng: &mut Rng, hundredths: u8, usual: &[&'c str], odd: &[&'c str]) -> &'c str {
    if rng.u8(..100) < hundredths { pick(rng, usual) } else { pick(rng, odd) }
}

/// The usual lines nine times in ten, otherwise some odd ones.
fn mostly<'c>(rng: &mut Rng, usual: &'c [&'c str], odd: &'c [&'c [&'c str]]) -> impl Iterator<Item = &'c str> {
    let lines = if rng.u8(..10) < 9 { usual } else { pick(rng, odd) };
    lines.iter().copied()
}

fn line_end(rng: &mut Rng) -> &'static str {
    usual(rng, 99, &["\r\n"], &["\n", "\r", "\r\r\n", "\r\n\r\n", "\r\n ", "\0\r\n"])
}

const SMUGGLED: &[u8] = b"GET /smuggled HTTP/1.1\r\nHost: evil\r\n\r\n";

const METHODS: &[&str] =
    &["get", "PATCH", "DELETE", "TRACE", "CONNECT", "PRI", "G:T", "", "X-Y", "POST /in HTTP/1.1\r\nHost: b\r\n\r\nGET"];
const TARGETS: &[&str] = &[
    "*",
    "http://a/t",
    "http://b/t",
    "https://a:80/t",
    "http://u@a/t",
    "HTTP://A/t",
    "t",
    "",
    "/t#u",
    "/t\\u",
    "/\u{e9}",
    "/t t",
    "a:80",
    "/t\0",
    "http://a?t",
    "?t",
    "/t HTTP/1.1\r\nHost: b\r\n\r\nGET /u",
];
const VERSIONS: &[&str] = &["HTTP/1.0", "HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "http/1.1", "HTTP/1.1 ", "HTTP/1.11", ""];
const COLONS: &[&str] = &[":", " : ", ":\t", ": \x0b", ":\r\n ", "\t:", "", ": ,"];
const HOSTS: &[&[&str]] = &[
    &[],
    &["Host: a", "Host: b"],
    &["Host: a", "host: a"],
    &["Host: a, b"],
    &["Host: a:99999"],
    &["Host: a:80"],
    &["Host: [::1]"],
    &["Host:"],
    &["Host: a/b"],
    &["Host: A.Example."],
    &["Host_: b", "Host: a"],
];
const LENGTHS: &[&str] = &[
    "Content-Length: 0",
    "Content-Length: 1",
    "Content-Length: 500",
    "Content-Length: +5",
    "Content-Length: -1",
    "Content-Length: 5, 5",
    "Content-Length: 5 5",
    "Content-Length: 0x5",
    "Content-Length: 05",
    "Content-Length:",
    "Content-Length: 99999999999999999999",
    "Content_Length: 5",
    "Content-Length : 5",
];
const ENCODINGS: &[&str] = &[
    "Transfer-Encoding: identity",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: chunked, chunked",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: x",
    "Transfer-Encoding: xchunked",
    "Transfer-Encoding: CHUNKED",
    "Transfer-Encoding: \x0bchunked",
    "Transfer-Encoding:\tchunked ",
    "Transfer-Encoding: chunked;x",
    "Transfer-Encoding:",
    "Transfer_Encoding: chunked",
    "Transfer-Encoding : chunked",
    "X: y\nTransfer-Encoding: chunked",
    "X: y\r\n Transfer-Encoding: chunked",
];
const CHUNKS: &[&str] = &[
    "5;x=\"y\"\r\nhello\r\n0\r\n\r\n",
    "5\r\nhello\r\n0\r\nX-Sum: 1\r\nHost: b\r\n\r\n",
    "5\r\nhello\r\n0\r\nno colon\r\n\r\n",
    "05\r\nhello\r\n00\r\n\r\n",
    "5 \r\nhello\r\n0\r\n\r\n",
    "0x5\r\nhello\r\n0\r\n\r\n",
    "5\nhello\n0\n\n",
    "6\r\nhello\r\n0\r\n\r\n",
    "4\r\nhello\r\n0\r\n\r\n",
    "fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
    "5\r\nhello\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: evil\r\n\r\n",
    "5\r\nhello\r\n0\r\n",
];
const FIELDS: &[&str] = &[
    "Connection: close",
    "Connection: keep-alive, Content-Length, X-Mark",
    "Connection: Host, Transfer-Encoding",
    "Connection: Upgrade\r\nUpgrade: h2c",
    "Connection: Upgrade\r\nUpgrade: websocket",
    "Expect: 100-continue",
    "Expect: x",
    "TE: trailers",
    "Trailer: X-Sum",
    "X-Forwarded-For: 6.6.6.6",
    "X_Forwarded_For: 6.6.6.6",
    "X-Real-IP: 6.6.6.6",
    "X-Forwarded-Host: evil",
    "X-Request-Id: mine",
    "X-Original-URL: /smuggled",
    "X-HTTP-Method-Override: DELETE",
    "Cookie: a=b; c=d",
    "X: y\r\n z",
    "X Y: z",
    "no colon",
    ": nameless",
    "X: \u{e9}",
    "X: y\rz",
    "Accept: */*",
];
const BYTES: &[u8] = b"\r\n\r\n\0 \t:;,/.0159afX\x0b\x0c\x1b\x7f\x80\xa0\xff\"\\#%[]@";
