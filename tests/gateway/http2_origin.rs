//! An application that speaks nothing but HTTP/2.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, server};
use http::request::Parts;
use http::{HeaderValue, Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Barrier;

use crate::forwarding::cookie_lines;
use crate::support::{Background, Gateway};

/// An application that speaks nothing but HTTP/2. What it does is in the path.
pub(crate) struct Http2Origin {
    pub(crate) address: SocketAddr,
    pub(crate) seen: Arc<Seen>,
    _background: Background,
}

pub(crate) struct Seen {
    pub(crate) heads: Mutex<Vec<Parts>>,
    connections: AtomicUsize,
    together: Barrier,
    /// So many more connections get GOAWAY on their first request, which was not processed.
    pub(crate) unwelcome: AtomicUsize,
}

impl Http2Origin {
    pub(crate) fn start() -> Self {
        Self::with(100, 1)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Takes so many requests at a time on a connection; `/together` waits for so many.
    pub(crate) fn with(most: u32, together: usize) -> Self {
        let background = Background::start();
        let listener = background.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = listener.local_addr().expect("bound");
        let seen = Arc::new(Seen {
            heads: Mutex::default(),
            connections: AtomicUsize::new(0),
            together: Barrier::new(together),
            unwelcome: AtomicUsize::new(0),
        });
        let kept = Arc::clone(&seen);
        background.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let seen = Arc::clone(&kept);
                seen.connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    if seen.unwelcome.load(Ordering::SeqCst) > 0 {
                        seen.unwelcome.fetch_sub(1, Ordering::SeqCst);
                        return send_away(stream).await;
                    }
                    let mut builder = server::Builder::new();
                    let Ok(mut connection) = builder.max_concurrent_streams(most).handshake(stream).await else {
                        return;
                    };
                    while let Some(Ok((request, answer))) = connection.accept().await {
                        if request.uri().path() == "/die" {
                            drop(seen.note(request));
                            return;
                        }
                        tokio::spawn(serve(request, answer, Arc::clone(&seen)));
                    }
                });
            }
        });
        Self { address, seen, _background: background }
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn gateway(&self) -> Gateway {
        self.gateway_with("")
    }

    /// One with more in its configuration.
    pub(crate) fn gateway_with(&self, config: &str) -> Gateway {
        Gateway::start(format!(
            "upstream: app\nupstreams:\n  app: {{servers: ['http://{}'], http2: true}}\n{config}",
            self.address
        ))
    }
}

impl Seen {
    pub(crate) fn count(&self, path: &str) -> usize {
        self.heads.lock().expect("no panic here").iter().filter(|head| head.uri.path() == path).count()
    }

    fn note(&self, request: Request<RecvStream>) -> (usize, RecvStream) {
        let (head, body) = request.into_parts();
        let before = self.count(head.uri.path());
        self.heads.lock().expect("no panic here").push(head);
        (before, body)
    }

    pub(crate) fn last(&self) -> Parts {
        self.heads.lock().expect("no panic here").last().expect("a request").clone()
    }
}

/// Takes a whole request, and says GOAWAY: the last stream that was looked at is none.
async fn send_away(mut stream: TcpStream) {
    const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
    const GOAWAY: &[u8] = b"\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0";
    let mut preface = [0; 24];
    let _ = stream.write_all(SETTINGS).await;
    let _ = stream.read_exact(&mut preface).await;
    let mut header = [0; 9];
    while stream.read_exact(&mut header).await.is_ok() {
        let [high, middle, low, kind, flags, ..] = header;
        let mut payload = vec![0; usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low)];
        let _ = stream.read_exact(&mut payload).await;
        // DATA or HEADERS, with END_STREAM.
        if kind < 2 && flags & 1 == 1 {
            let _ = stream.write_all(GOAWAY).await;
        }
    }
}

/// Says something ahead of the answer: twice, or without end.
async fn hint(path: &str, mut answer: SendResponse<Bytes>) {
    let hints = |link: &str| Response::builder().status(103).header("link", link).body(()).expect("a head");
    let pause = Duration::from_millis(if path == "/hints-slowly" { 100 } else { 0 });
    let count = if path == "/hints" { 2 } else { 100_000 };
    for number in 0..count {
        if answer.send_informational(hints(&format!("</{number}.css>; rel=preload"))).is_err() {
            return;
        }
        tokio::time::sleep(pause).await;
    }
    drop(answer.send_response(Response::new(()), true));
}

async fn serve(request: Request<RecvStream>, mut answer: SendResponse<Bytes>, seen: Arc<Seen>) {
    let path = request.uri().path().to_owned();
    let (before, mut body) = seen.note(request);
    let head = Response::builder().header("content-type", "application/grpc");
    if path.starts_with("/refuse") && path != "/refuse-late" && before == 0 {
        answer.send_reset(Reason::REFUSED_STREAM);
        return;
    }
    if path == "/refuse-late" {
        let mut length = 0;
        while length < 60_000
            && let Some(Ok(piece)) = body.data().await
        {
            length += piece.len();
        }
        answer.send_reset(Reason::REFUSED_STREAM);
        return;
    }
    if path == "/cookies" || path == "/too-long" {
        let count = if path == "/cookies" { 1 } else { 10 };
        let lines = (0..count).flat_map(|_| cookie_lines());
        let head = lines.fold(head, |head, line| head.header("set-cookie", line));
        answer.send_response(head.body(()).expect("a head"), true).expect("sent");
        return;
    }
    if path == "/asks" {
        let asks = Response::builder().status(100).body(()).expect("a head");
        answer.send_informational(asks).expect("sent");
    }
    if path == "/reads-first" || path == "/asks" {
        let mut length = 0;
        while let Some(Ok(piece)) = body.data().await {
            length += piece.len();
        }
        let mut stream = answer.send_response(head.body(()).expect("a head"), false).expect("sent");
        stream.send_data(Bytes::from(format!("{length} bytes")), true).expect("sent");
        return;
    }
    if path.starts_with("/hints") {
        return hint(&path, answer).await;
    }
    if path == "/together" {
        seen.together.wait().await;
    }
    if path == "/trailers-only" {
        let head = head.header("grpc-status", "5").body(()).expect("a head");
        answer.send_response(head, true).expect("sent");
        return;
    }
    let mut stream = answer.send_response(head.body(()).expect("a head"), false).expect("sent");
    if path == "/cut" {
        stream.send_data(Bytes::from_static(b"half"), false).expect("sent");
        tokio::time::sleep(Duration::from_millis(50)).await;
        stream.send_reset(Reason::INTERNAL_ERROR);
        return;
    }
    let mut length = 0;
    while let Some(Ok(piece)) = body.data().await {
        body.flow_control().release_capacity(piece.len()).expect("received");
        length += piece.len();
        if path == "/echo" {
            stream.send_data(piece, false).expect("sent");
        }
    }
    if path != "/echo" {
        stream.send_data(Bytes::from(format!("{length} bytes")), false).expect("sent");
    }
    let mut trailers = body.trailers().await.ok().flatten().unwrap_or_default();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    stream.send_trailers(trailers).expect("sent");
}
