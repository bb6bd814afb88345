//! Requests over HTTP/1.1, one at a time on a connection.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::browser::{question, request};
use super::turns::Turns;
use super::{Outcome, Sends};
use crate::job::{Clients, Job, Over};

/// What the connections ask.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    request: Vec<u8>,
    /// How many keys of clients take turns; none: requests name no client.
    keys: usize,
    turns: Turns,
    status: String,
    answer: &'static str,
}

impl Asking {
    pub(super) fn new(job: Job, turns: Turns) -> Self {
        let (key, keys) = match job.clients {
            Clients::Keys(keys) => ("X-Api-Key: 0000000000000000\r\n", keys),
            Clients::One | Clients::Addresses => ("", 0),
        };
        let request = match job.over {
            Over::ForwardAuth => question(job.sends, job.path),
            _ => request(job.sends, job.path, key),
        };
        Self { request, keys, turns, status: format!("HTTP/1.1 {} ", job.status), answer: job.answer }
    }

    pub(super) fn turns(&self) -> &Turns {
        &self.turns
    }

    /// The request in that turn.
    fn request(&mut self, turn: usize) -> &[u8] {
        if self.keys > 0 {
            // Requests of clients with keys have no body.
            let digits = self.request.len() - b"00000000\r\n\r\n".len();
            self.request[digits..digits + 8].copy_from_slice(format!("{:08}", turn % self.keys).as_bytes());
        }
        &self.request
    }

    fn is_expected(&self, head: &[u8]) -> bool {
        let answer = field(head, b"content-type:").unwrap_or_default();
        head.starts_with(self.status.as_bytes()) && answer.starts_with(self.answer)
    }

    /// Asks so many times at most, until the load ends or the connection breaks.
    pub(super) async fn on<S>(&mut self, stream: &mut S, at_most: usize, outcome: &mut Outcome)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut buffer = Vec::with_capacity(16 * 1024);
        for _ in 0..at_most {
            let Some((turn, sent)) = self.turns.take() else { return };
            if ask(stream, self.request(turn), &mut buffer).await.is_none() {
                outcome.wrong += 1;
                return;
            }
            if self.turns.is_counted(sent) {
                outcome.note(sent, self.is_expected(&buffer));
            }
        }
    }
}

/// Of a browser that follows a link.
pub(crate) fn page_request(path: &str) -> Vec<u8> {
    request(Sends::Navigation, path, "")
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
    field(head, b"content-length:")?.parse().ok()
}

/// The value of a field; its name has small letters and its colon.
fn field<'a>(head: &'a [u8], name: &[u8]) -> Option<&'a str> {
    let line = head
        .split(|byte| *byte == b'\n')
        .find(|line| line.len() > name.len() && line[..name.len()].eq_ignore_ascii_case(name))?;
    Some(std::str::from_utf8(&line[name.len()..]).ok()?.trim())
}
