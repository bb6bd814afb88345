//! A client that sends exactly the bytes of a test.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

pub(super) struct Client {
    pub(super) stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub(super) async fn connect(address: SocketAddr) -> Self {
        Self { stream: TcpStream::connect(address).await.unwrap(), buffer: Vec::new() }
    }

    pub(super) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    pub(super) async fn get(&mut self, path: &str) -> String {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        self.answer().await
    }

    /// Reads the next response: its head, and a body of known or chunked length.
    pub(super) async fn answer(&mut self) -> String {
        let complete = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            let head = text.find("\r\n\r\n")? + 4;
            if text.contains("transfer-encoding: chunked") {
                return text.find("0\r\n\r\n").map(|end| end + 5);
            }
            let length = text
                .split("content-length: ")
                .nth(1)
                .map_or(0, |rest| rest.split("\r\n").next().unwrap().parse::<usize>().unwrap());
            (bytes.len() >= head + length).then_some(head + length)
        };
        loop {
            if let Some(end) = complete(&self.buffer) {
                let answer: Vec<u8> = self.buffer.drain(..end).collect();
                return String::from_utf8(answer).unwrap();
            }
            let read = timeout(PATIENCE, self.stream.read_buf(&mut self.buffer)).await.expect("an answer");
            assert_ne!(read.unwrap(), 0, "closed after {:?}", String::from_utf8_lossy(&self.buffer));
        }
    }

    /// Reads all bytes until the server closes.
    pub(super) async fn rest(&mut self) -> String {
        timeout(PATIENCE, self.stream.read_to_end(&mut self.buffer)).await.expect("an end").unwrap();
        String::from_utf8(std::mem::take(&mut self.buffer)).unwrap()
    }

    /// Returns when the server has closed or reset the connection.
    pub(super) async fn closed(&mut self) {
        let mut scratch = [0; 4096];
        let closing = async { while self.stream.read(&mut scratch).await.is_ok_and(|read| read > 0) {} };
        timeout(PATIENCE, closing).await.expect("the server closes");
    }

    /// Resets the connection.
    pub(super) fn reset(self) {
        socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO)).unwrap();
    }

    /// Whether the server sends nothing for a while, and does not close.
    pub(super) async fn is_silent(&mut self, span: Duration) -> bool {
        timeout(span, self.stream.read_buf(&mut self.buffer)).await.is_err()
    }
}

/// Far longer than any step takes.
const PATIENCE: Duration = Duration::from_secs(20);
