//! A strict parser of HTTP/1.1 requests (RFC 9112): every application reads what it accepts in the same way.

/// One request, with the bytes it was read from.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    bytes: Vec<u8>,
    head: usize,
}

/// What is left of a stream behind its last whole request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Rest {
    Nothing,
    /// A head, and not all of the body it announces.
    CutShort(Vec<u8>),
    Malformed(String),
}

/// The fields that a gateway writes into every request.
const OWN: [&str; 6] =
    ["portcullis-loop", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "x-request-id"];

/// Every request of a stream, and what is left.
pub(crate) fn requests(bytes: &[u8]) -> (Vec<Arrival>, Rest) {
    let mut arrivals = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        match request(rest) {
            Ok((arrival, behind)) => {
                arrivals.push(arrival);
                rest = behind;
            }
            Err(Flaw::Short) => return (arrivals, Rest::CutShort(rest.to_vec())),
            Err(Flaw::Wrong(what)) => {
                return (arrivals, Rest::Malformed(format!("{what} in {}", rest.escape_ascii())));
            }
        }
    }
    (arrivals, Rest::Nothing)
}

impl Arrival {
    /// The values of a field, in the order they came.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        self.fields.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect()
    }

    #[track_caller]
    pub(crate) fn one(&self, name: &str) -> &str {
        let values = self.all(name);
        assert_eq!(values.len(), 1, "{name} in {}", self.bytes.escape_ascii());
        values[0]
    }

    /// All of its bytes but the lines that the gateway writes into every request, the others in alphabetical order.
    pub(crate) fn shape(&self) -> String {
        shape(&self.bytes, self.head)
    }
}

/// [`Arrival::shape`] of bytes that are not a whole request.
pub(crate) fn shape_of_start(bytes: &[u8]) -> String {
    shape(bytes, memchr::memmem::find(bytes, b"\r\n\r\n").map_or(bytes.len(), |end| end + 4))
}

fn shape(bytes: &[u8], head: usize) -> String {
    let (head, body) = bytes.split_at(head);
    let head = String::from_utf8_lossy(head);
    let mut lines = head.split_inclusive("\r\n").filter(|line| *line != "\r\n");
    let first = lines.next().unwrap_or_default().to_owned();
    let is_own = |line: &&str| OWN.iter().any(|name| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(':')));
    let mut others: Vec<&str> = lines.filter(|line| !is_own(line)).collect();
    others.sort_unstable();
    format!("{first}{}\r\n{}", others.concat(), String::from_utf8_lossy(body))
}

enum Flaw {
    Short,
    Wrong(&'static str),
}

fn request(bytes: &[u8]) -> Result<(Arrival, &[u8]), Flaw> {
    let end = memchr::memmem::find(bytes, b"\r\n\r\n").ok_or(Flaw::Wrong("a head without an end"))? + 4;
    let head = &bytes[..end - 2];
    let (line, lines) = line(head)?;
    let mut words = line.split(|byte| *byte == b' ');
    let (Some(method), Some(target), Some(b"HTTP/1.1"), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Flaw::Wrong("a request line that is not three words"));
    };
    if method.is_empty() || !method.iter().copied().all(is_token) {
        return Err(Flaw::Wrong("a method that is no token"));
    }
    let is_asterisk = target == b"*" && method == b"OPTIONS";
    if !(is_asterisk || target.starts_with(b"/")) || !target.iter().all(u8::is_ascii_graphic) || target.contains(&b'#')
    {
        return Err(Flaw::Wrong("a target that is not in origin form"));
    }
    let fields = fields(lines)?;
    let (body, length) = body(&fields, &bytes[end..])?;
    let (whole, behind) = bytes.split_at(end + length);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let arrival =
        Arrival { method: text(method), target: text(target), fields, body, bytes: whole.to_vec(), head: end };
    Ok((arrival, behind))
}

/// A line without its end, and what follows it.
fn line(bytes: &[u8]) -> Result<(&[u8], &[u8]), Flaw> {
    let end = memchr::memmem::find(bytes, b"\r\n").ok_or(Flaw::Short)?;
    let (line, rest) = (&bytes[..end], &bytes[end + 2..]);
    if line.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
        return Err(Flaw::Wrong("a bare CR, LF or NUL"));
    }
    Ok((line, rest))
}

fn fields(mut lines: &[u8]) -> Result<Vec<(String, String)>, Flaw> {
    let mut fields = Vec::new();
    while !lines.is_empty() {
        let (one, rest) = line(lines)?;
        fields.push(field(one)?);
        lines = rest;
    }
    Ok(fields)
}

fn field(line: &[u8]) -> Result<(String, String), Flaw> {
    let colon = line.iter().position(|byte| *byte == b':').ok_or(Flaw::Wrong("a field without a colon"))?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    if name.is_empty() || !name.iter().copied().all(is_token) {
        return Err(Flaw::Wrong("a field whose name is no token"));
    }
    let value = value.strip_prefix(b" ").unwrap_or(value);
    let is_text = |byte: &u8| *byte == b'\t' || *byte >= b' ' && *byte != 0x7f;
    if value.trim_ascii() != value || !value.iter().all(is_text) {
        return Err(Flaw::Wrong("a field whose value is no text"));
    }
    Ok((String::from_utf8_lossy(name).to_ascii_lowercase(), String::from_utf8_lossy(value).into_owned()))
}

/// The body these fields announce, and how many bytes it takes.
fn body(fields: &[(String, String)], bytes: &[u8]) -> Result<(Vec<u8>, usize), Flaw> {
    let all = |name: &str| fields.iter().filter(|(known, _)| known == name).map(|(_, value)| value).collect::<Vec<_>>();
    if all("host").len() != 1 {
        return Err(Flaw::Wrong("not exactly one Host"));
    }
    match (all("content-length").as_slice(), all("transfer-encoding").as_slice()) {
        ([], []) => Ok((Vec::new(), 0)),
        ([], [coding]) if *coding == "chunked" => chunked(bytes),
        ([length], []) if !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit()) => {
            let length: usize = length.parse().map_err(|_| Flaw::Wrong("a length beyond all bounds"))?;
            bytes.get(..length).map(|body| (body.to_vec(), length)).ok_or(Flaw::Short)
        }
        _ => Err(Flaw::Wrong("not exactly one framing")),
    }
}

fn chunked(bytes: &[u8]) -> Result<(Vec<u8>, usize), Flaw> {
    let (mut body, mut rest) = (Vec::new(), bytes);
    loop {
        let (size, data) = line(rest)?;
        if size.is_empty() || size.len() > 8 || !size.iter().all(u8::is_ascii_hexdigit) {
            return Err(Flaw::Wrong("a chunk size that is not plain"));
        }
        let size =
            usize::from_str_radix(&String::from_utf8_lossy(size), 16).map_err(|_| Flaw::Wrong("a chunk size"))?;
        if size == 0 {
            rest = data;
            break;
        }
        body.extend_from_slice(data.get(..size).ok_or(Flaw::Short)?);
        let (end, behind) = (data.get(size..size + 2).ok_or(Flaw::Short)?, &data[size + 2..]);
        if end != b"\r\n" {
            return Err(Flaw::Wrong("a chunk without its end"));
        }
        rest = behind;
    }
    loop {
        let (trailer, behind) = line(rest)?;
        rest = behind;
        if trailer.is_empty() {
            return Ok((body, bytes.len() - rest.len()));
        }
        let (name, _) = field(trailer)?;
        if ["host", "content-length", "transfer-encoding", "trailer", "te"].contains(&name.as_str()) {
            return Err(Flaw::Wrong("a trailer that may not be one"));
        }
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[track_caller]
fn check(bytes: &str, whole: usize, rest_is: fn(&Rest) -> bool) {
    let (arrivals, rest) = requests(bytes.as_bytes());
    assert_eq!(arrivals.len(), whole, "{bytes:?}");
    assert!(rest_is(&rest), "{bytes:?}: {rest:?}");
}

#[test]
fn whole_requests_are_told_from_their_neighbours() {
    let is_nothing = |rest: &Rest| *rest == Rest::Nothing;
    check("GET / HTTP/1.1\r\nhost: a\r\n\r\nOPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n", 2, is_nothing);
    check("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nokGET / HTTP/1.1\r\nhost: a\r\n\r\n", 2, is_nothing);
    let chunks = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx: y\r\n\r\n";
    check(chunks, 1, is_nothing);
    check(&chunks[..chunks.len() - 1], 0, |rest| matches!(rest, Rest::CutShort(_)));
}

#[test]
fn nothing_is_forgiven() {
    for wrong in [
        "GET / HTTP/1.1\nhost: a\n\n",
        "GET  / HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET / HTTP/1.0\r\nhost: a\r\n\r\n",
        "GET http://a/ HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET * HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nhost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nhost : a\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a \r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\n b\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nx: a\rb\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\ncontent-length: +1\r\n\r\nx",
        "GET / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: Chunked \r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0;x\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\nhost: b\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n",
    ] {
        check(wrong, 0, |rest| matches!(rest, Rest::Malformed(_)));
    }
}
