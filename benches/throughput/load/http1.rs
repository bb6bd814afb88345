//! Requests over HTTP/1.1, one at a time on a connection.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Instant;

use tokio::io::AsyncRead;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWrite;
use tokio::io::AsyncWriteExt;

use super::HEADERS;
use super::Outcome;
use super::connect::SITE;
use crate::job::Clients;
use crate::job::Job;

/// What the connections ask.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    request: Vec<u8>,
    /// How many keys of clients take turns; none: requests name no client.
    keys: usize,
    /// Requests of all connections so far.
    asked: Arc<AtomicUsize>,
    status: String,
    until: Instant,
}

impl Asking {
    pub(super) fn new(job: Job, until: Instant) -> Self {
        let (request, keys) = match (job.clients, job.sends) {
            (Clients::Keys(keys), _) => (request_with_key(job.path), keys),
            (_, 0) => (request(job.path), 0),
            (_, sends) => (request_with_body(job.path, sends), 0),
        };
        Self { request, keys, asked: Arc::default(), status: format!("HTTP/1.1 {} ", job.status), until }
    }

    pub(super) fn until(&self) -> Instant {
        self.until
    }

    fn next(&mut self) -> &[u8] {
        if self.keys > 0 {
            let client = self.asked.fetch_add(1, Ordering::Relaxed) % self.keys;
            let digits = self.request.len() - b"00000000\r\n\r\n".len();
            self.request[digits..digits + 8].copy_from_slice(format!("{client:08}").as_bytes());
        }
        &self.request
    }

    /// Asks so many times at most, until it is time to stop or the connection breaks.
    pub(super) async fn on<S>(&mut self, stream: &mut S, at_most: usize, outcome: &mut Outcome)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut buffer = Vec::with_capacity(16 * 1024);
        for _ in 0..at_most {
            let sent = Instant::now();
            if sent >= self.until {
                return;
            }
            if ask(stream, self.next(), &mut buffer).await.is_none() {
                outcome.wrong += 1;
                return;
            }
            outcome.note(sent, buffer.starts_with(self.status.as_bytes()));
        }
    }
}

/// A head as browsers send it, shortened.
pub(crate) fn request(path: &str) -> Vec<u8> {
    let fields = HEADERS.map(|(name, value)| format!("{name}: {value}\r\n")).concat();
    format!("GET {path} HTTP/1.1\r\nHost: {SITE}\r\n{fields}\r\n").into_bytes()
}

/// The same with a body of so many bytes.
fn request_with_body(path: &str, sends: usize) -> Vec<u8> {
    let mut request = request(path).split_off(b"GET".len());
    request.splice(..0, *b"POST");
    request.truncate(request.len() - b"\r\n".len());
    request.extend_from_slice(format!("Content-Length: {sends}\r\n\r\n").as_bytes());
    request.resize(request.len() + sends, b'x');
    request
}

/// The same with a key of a client, which is written over.
fn request_with_key(path: &str) -> Vec<u8> {
    let mut head = request(path);
    head.truncate(head.len() - b"\r\n".len());
    head.extend_from_slice(b"X-Api-Key: 0000000000000000\r\n\r\n");
    head
}

/// Sends a request, reads one answer with a Content-Length, and keeps its head.
pub(super) async fn ask<S>(stream: &mut S, request: &[u8], buffer: &mut Vec<u8>) -> Option<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.write_all(request).await.ok()?;
    stream.flush().await.ok()?;
    buffer.clear();
    let mut body = Vec::new();
    loop {
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
        if let Some(end) = memchr::memmem::find(buffer, b"\r\n\r\n") {
            let mut missing = content_length(&buffer[..end])?.checked_sub(buffer.len() - end - 4)?;
            while missing > 0 {
                body.clear();
                body.reserve(64 * 1024);
                let read = stream.read_buf(&mut body).await.ok()?;
                missing = missing.checked_sub(read).filter(|_| read > 0)?;
            }
            return Some(());
        }
    }
}

pub(crate) fn content_length(head: &[u8]) -> Option<usize> {
    let name = b"content-length:";
    let line = head
        .split(|byte| *byte == b'\n')
        .find(|line| line.len() > name.len() && line[..name.len()].eq_ignore_ascii_case(name))?;
    std::str::from_utf8(&line[name.len()..]).ok()?.trim().parse().ok()
}
