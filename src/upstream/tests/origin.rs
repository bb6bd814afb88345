//! An application that runs the script of a test.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::uri::Authority;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

pub(super) const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

pub(super) struct Origin {
    address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    closed: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Origin {
    /// Runs `script` on each connection, with its number from 0 on.
    pub(super) async fn start<F, S>(script: S) -> Self
    where
        F: Future<Output = ()> + Send,
        S: Fn(usize, Peer) -> F + Clone + Send + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let closed = Arc::new(AtomicUsize::new(0));
        let counts = (Arc::clone(&accepted), Arc::clone(&closed));
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let number = counts.0.fetch_add(1, Ordering::SeqCst);
                let script = script.clone();
                let closed = Arc::clone(&counts.1);
                tokio::spawn(async move {
                    script(number, Peer { stream, buffer: Vec::new() }).await;
                    closed.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        Self { address, accepted, closed, task }
    }

    /// Answers every request with the same bytes, on connections kept open.
    pub(super) async fn answering(answer: &'static str) -> Self {
        Self::start(
            move |_, mut peer| async move { while peer.request().await.is_some() && peer.send(answer).await {} },
        )
        .await
    }

    /// An address without a listener.
    pub(super) async fn down() -> Self {
        let origin = Self::answering("").await;
        origin.task.abort();
        while !origin.task.is_finished() {
            tokio::task::yield_now().await;
        }
        origin
    }

    pub(super) fn authority(&self) -> Authority {
        self.address.to_string().parse().unwrap()
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    pub(super) fn closed(&self) -> usize {
        self.closed.load(Ordering::SeqCst)
    }
}

/// One connection to an origin.
pub(super) struct Peer {
    pub(super) stream: TcpStream,
    buffer: Vec<u8>,
}

impl Peer {
    /// The next request, its body included; `None` when the other side has closed.
    pub(super) async fn request(&mut self) -> Option<String> {
        loop {
            let text = String::from_utf8_lossy(&self.buffer).into_owned();
            if let Some(end) = text.find("\r\n\r\n") {
                let length = text
                    .split("content-length: ")
                    .nth(1)
                    .map_or(0, |rest| rest.split("\r\n").next().unwrap().parse::<usize>().unwrap());
                if self.buffer.len() >= end + 4 + length {
                    let request = self.buffer.drain(..end + 4 + length).collect();
                    return Some(String::from_utf8(request).unwrap());
                }
            }
            if self.stream.read_buf(&mut self.buffer).await.unwrap_or(0) == 0 {
                return None;
            }
        }
    }

    pub(super) async fn send(&mut self, bytes: &str) -> bool {
        self.stream.write_all(bytes.as_bytes()).await.is_ok()
    }

    /// Returns when the other side has closed.
    pub(super) async fn closed(&mut self) {
        while self.stream.read_buf(&mut self.buffer).await.is_ok_and(|read| read > 0) {}
    }

    pub(super) fn reset(self) {
        socket2::SockRef::from(&self.stream).set_linger(Some(std::time::Duration::ZERO)).unwrap();
    }
}
