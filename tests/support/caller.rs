//! A client for load: it keeps its connection, and sends and reads separately, so that one thread can have many
//! requests under way.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::clock::{PATIENCE, Stopwatch};

/// One connection. It is opened with the first request, and again after it was lost.
#[derive(Debug, Default)]
pub struct Caller {
    stream: Option<TcpStream>,
    unread: Vec<u8>,
}

impl Caller {
    /// Sends a request with `X-Key`, and with the time of `clock` at which it was sent. A failure shows in
    /// [`Self::answer`].
    pub fn ask(&mut self, address: SocketAddr, target: &str, key: &str, clock: Stopwatch) {
        if self.stream.is_none() {
            self.unread.clear();
            self.stream = connect(address);
        }
        let sent = clock.elapsed().as_micros();
        let head = format!("GET {target} HTTP/1.1\r\nHost: app.example\r\nX-Key: {key}\r\nX-Sent: {sent}\r\n\r\n");
        let written = self.stream.as_mut().is_some_and(|stream| stream.write_all(head.as_bytes()).is_ok());
        if !written {
            self.stream = None;
        }
    }

    /// Waits for the next answer and returns its status, or `None` if the connection was lost.
    pub fn answer(&mut self) -> Option<u16> {
        let status = self.read();
        if status.is_none() {
            self.stream = None;
        }
        status
    }

    /// Sends a request and waits for its answer.
    pub fn call(&mut self, address: SocketAddr, target: &str, key: &str, clock: Stopwatch) -> Option<u16> {
        self.ask(address, target, key, clock);
        self.answer()
    }

    fn read(&mut self) -> Option<u16> {
        let mut chunk = [0; 4096];
        loop {
            if let Some((status, length)) = whole(&self.unread) {
                self.unread.drain(..length);
                return Some(status);
            }
            let length = self.stream.as_mut()?.read(&mut chunk).ok().filter(|length| *length > 0)?;
            self.unread.extend_from_slice(&chunk[..length]);
        }
    }
}

fn connect(address: SocketAddr) -> Option<TcpStream> {
    let stream = TcpStream::connect(address).ok()?;
    stream.set_nodelay(true).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    Some(stream)
}

/// Status and length of the first response in these bytes, once it is there with its body.
fn whole(bytes: &[u8]) -> Option<(u16, usize)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&bytes[..end]).expect("heads of the gateway are ASCII");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let length =
        head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    let length = end + length.unwrap_or(0_usize);
    (bytes.len() >= length).then_some((status, length))
}
