//! HTTP/1.1 messages, read from a socket byte by byte by a strict parser.

use std::io::{ErrorKind, Read};

/// Bodies are kept up to this length. Of longer ones only length and digest are known.
const KEPT: usize = 4 * 1024 * 1024;

/// Header lines in the order they came, names as they were spelled.
#[derive(Clone, Debug, Default)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// The value of that name. Fails if there are several.
    #[track_caller]
    pub fn get(&self, name: &str) -> Option<&str> {
        let values = self.all(name);
        assert!(values.len() < 2, "several {name}: {values:?}");
        values.first().copied()
    }

    pub fn all(&self, name: &str) -> Vec<&str> {
        self.0.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str()).collect()
    }

    /// Whether a list of tokens (`Connection`, `Transfer-Encoding`) names this one.
    pub fn lists(&self, name: &str, token: &str) -> bool {
        self.all(name).iter().any(|value| value.split(',').any(|part| part.trim().eq_ignore_ascii_case(token)))
    }

    pub fn names(&self) -> Vec<String> {
        self.0.iter().map(|(name, _)| name.to_ascii_lowercase()).collect()
    }

    fn parse(lines: &str) -> Self {
        let split = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_owned(), value.trim().to_owned()))
        };
        Self(lines.lines().filter_map(split).collect())
    }
}

/// A response as the client received it.
#[derive(Clone, Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Headers,
    pub trailers: Headers,
    /// The first 4 MiB.
    pub body: Vec<u8>,
    pub body_length: u64,
    /// [`digest`] of the whole body.
    pub body_digest: u64,
    /// False when the connection ended before the message did.
    pub whole: bool,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {:?}", self.text()))
    }
}

/// A stream with the bytes that were read and not used yet.
#[derive(Debug)]
pub(super) struct Wire<S> {
    pub(super) stream: S,
    pub(super) unread: Vec<u8>,
}

/// The stream ended, or the read timed out.
#[derive(Debug)]
pub(super) struct Ended;

impl<S: Read> Wire<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, unread: Vec::new() }
    }

    /// Reads more bytes. Fails after a close, a reset or the read timeout.
    pub(super) fn fill(&mut self) -> Result<usize, Ended> {
        let mut chunk = vec![0; 64 * 1024];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(Ended),
                Ok(length) => {
                    self.unread.extend_from_slice(&chunk[..length]);
                    return Ok(length);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(Ended),
            }
        }
    }

    /// One head with its blank line, as received.
    pub(super) fn head(&mut self) -> Result<String, Ended> {
        loop {
            if let Some(end) = self.unread.windows(4).position(|four| four == b"\r\n\r\n") {
                let head: Vec<u8> = self.unread.drain(..end + 4).collect();
                return Ok(String::from_utf8_lossy(&head).into_owned());
            }
            self.fill()?;
        }
    }

    fn line(&mut self) -> Result<String, Ended> {
        loop {
            if let Some(end) = self.unread.windows(2).position(|two| two == b"\r\n") {
                let line: Vec<u8> = self.unread.drain(..end + 2).collect();
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            self.fill()?;
        }
    }

    fn exactly(&mut self, mut length: u64, body: &mut Body) -> Result<(), Ended> {
        while length > 0 {
            if self.unread.is_empty() {
                self.fill()?;
            }
            let take = usize::try_from(length).unwrap_or(usize::MAX).min(self.unread.len());
            body.push(&self.unread[..take]);
            self.unread.drain(..take);
            length -= take as u64;
        }
        Ok(())
    }

    fn chunked(&mut self, body: &mut Body) -> Result<Headers, Ended> {
        loop {
            let size = self.line()?;
            let size = size.split(';').next().unwrap_or_default().trim();
            let size = u64::from_str_radix(size, 16).map_err(|_| Ended)?;
            if size == 0 {
                let mut trailers = String::new();
                loop {
                    let line = self.line()?;
                    if line.is_empty() {
                        return Ok(Headers::parse(&trailers));
                    }
                    trailers.push_str(&line);
                    trailers.push('\n');
                }
            }
            self.exactly(size, body)?;
            self.line()?;
        }
    }

    /// The body that these headers announce, and whether it is complete. `until_close` says what missing framing means.
    pub(super) fn body(&mut self, headers: &Headers, until_close: bool) -> (Body, Headers, bool) {
        let mut body = Body::default();
        if headers.lists("transfer-encoding", "chunked") {
            return match self.chunked(&mut body) {
                Ok(trailers) => (body, trailers, true),
                Err(Ended) => (body, Headers::default(), false),
            };
        }
        if let Some(length) = headers.all("content-length").first() {
            let length = length.parse().expect("a content length is a number");
            let whole = self.exactly(length, &mut body).is_ok();
            return (body, Headers::default(), whole);
        }
        if until_close {
            loop {
                body.push(&self.unread);
                self.unread.clear();
                if self.fill().is_err() {
                    break;
                }
            }
        }
        (body, Headers::default(), true)
    }

    /// The final response to a request of that method. Informational ones before it are skipped.
    pub(super) fn response(&mut self, method: &str) -> Result<Response, Ended> {
        loop {
            let head = self.head()?;
            let (status_line, lines) = head.split_once("\r\n").ok_or(Ended)?;
            let status = status_line.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or(Ended)?;
            let headers = Headers::parse(lines);
            if status == 101 || !(100..200).contains(&status) {
                let bodiless = method == "HEAD" || matches!(status, 101 | 204 | 304);
                let (body, trailers, whole) =
                    if bodiless { (Body::default(), Headers::default(), true) } else { self.body(&headers, true) };
                let Body { kept, length, digest } = body;
                return Ok(Response {
                    status,
                    headers,
                    trailers,
                    body: kept,
                    body_length: length,
                    body_digest: digest.finish(),
                    whole,
                });
            }
        }
    }
}

/// Counts and digests bytes, and keeps the first ones.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub(super) kept: Vec<u8>,
    pub(super) length: u64,
    pub(super) digest: Digest,
}

impl Body {
    fn push(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        self.digest.update(bytes);
        let room = KEPT.saturating_sub(self.kept.len()).min(bytes.len());
        self.kept.extend_from_slice(&bytes[..room]);
    }
}

/// Compares two long bodies without keeping them. Not cryptographic.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Digest {
    state: u64,
    partial: u64,
    filled: u32,
}

impl Digest {
    pub(super) fn update(&mut self, mut bytes: &[u8]) {
        while self.filled != 0 && !bytes.is_empty() {
            self.byte(bytes[0]);
            bytes = &bytes[1..];
        }
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            self.word(u64::from_le_bytes(word.try_into().expect("eight bytes")));
        }
        for byte in words.remainder() {
            self.byte(*byte);
        }
    }

    pub(super) fn finish(mut self) -> u64 {
        let filled = self.filled;
        self.word(self.partial ^ u64::from(filled).rotate_right(8));
        self.state
    }

    fn byte(&mut self, byte: u8) {
        self.partial |= u64::from(byte) << (self.filled * 8);
        self.filled += 1;
        if self.filled == 8 {
            self.word(self.partial);
            self.partial = 0;
            self.filled = 0;
        }
    }

    fn word(&mut self, word: u64) {
        self.state = (self.state ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}

/// The [`Digest`] of these bytes.
pub fn digest(bytes: &[u8]) -> u64 {
    let mut digest = Digest::default();
    digest.update(bytes);
    digest.finish()
}

/// The first line and the header lines of a head.
pub(super) fn split_head(head: &str) -> (&str, Headers) {
    let (first, lines) = head.split_once("\r\n").unwrap_or((head, ""));
    (first, Headers::parse(lines))
}
