//! The load: 64 keep-alive connections, each with one request under way at any time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

pub(crate) const CONNECTIONS: usize = 64;

/// What was asked and got.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) requests: u64,
    /// Answers with another status than the one expected, and connections that broke.
    pub(crate) wrong: u64,
    /// Microseconds, sorted.
    pub(crate) latencies: Vec<u32>,
}

impl Outcome {
    /// Latency below which so many percent of the requests stayed, in microseconds.
    pub(crate) fn percentile(&self, percent: usize) -> u32 {
        let last = self.latencies.len().saturating_sub(1);
        self.latencies.get(last * percent / 100).copied().unwrap_or_default()
    }
}

/// Runs the load and prints what came of it in one line. With `clients`, so many keys of an API take turns.
pub(crate) fn run(address: &str, path: &str, status: &str, millis: &str, clients: &str) {
    let address: SocketAddr = address.parse().expect("an address");
    let until = Duration::from_millis(millis.parse().expect("a number"));
    let clients: usize = clients.parse().expect("a number");
    let head = if clients == 0 { request(path) } else { request_with_key(path) };
    let asked = Arc::new(AtomicUsize::new(0));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let outcome = runtime.block_on(async {
        let start = Instant::now();
        let mut running = JoinSet::new();
        for _ in 0..CONNECTIONS {
            let asking = Asking {
                head: head.clone(),
                clients,
                asked: Arc::clone(&asked),
                status: format!("HTTP/1.1 {status} "),
                until: start + until,
            };
            running.spawn(ask(address, asking));
        }
        let mut all = Outcome::default();
        while let Some(one) = running.join_next().await {
            let one = one.expect("no panic in a connection");
            all.requests += one.requests;
            all.wrong += one.wrong;
            all.latencies.extend(one.latencies);
        }
        all.latencies.sort_unstable();
        all
    });
    println!("{} {} {} {}", outcome.requests, outcome.wrong, outcome.percentile(50), outcome.percentile(99));
}

/// A head as browsers send it, shortened.
pub(crate) fn request(path: &str) -> Vec<u8> {
    format!(
        "GET {path} HTTP/1.1\r\nHost: app.example.com\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0)\r\n\
         Accept: */*\r\nAccept-Language: en-US,en;q=0.5\r\n\
         Accept-Encoding: gzip, deflate\r\nCookie: session=0123456789abcdef0123456789abcdef\r\n\r\n"
    )
    .into_bytes()
}

/// The same with a key of a client, which is written over.
fn request_with_key(path: &str) -> Vec<u8> {
    let mut head = request(path);
    head.truncate(head.len() - b"\r\n".len());
    head.extend_from_slice(b"X-Api-Key: 0000000000000000\r\n\r\n");
    head
}

/// What one connection asks.
struct Asking {
    head: Vec<u8>,
    clients: usize,
    /// Requests of all connections so far.
    asked: Arc<AtomicUsize>,
    status: String,
    until: Instant,
}

impl Asking {
    fn next(&mut self) -> &[u8] {
        if self.clients > 0 {
            let client = self.asked.fetch_add(1, Ordering::Relaxed) % self.clients;
            let digits = self.head.len() - b"00000000\r\n\r\n".len();
            self.head[digits..digits + 8].copy_from_slice(format!("{client:08}").as_bytes());
        }
        &self.head
    }
}

async fn ask(address: SocketAddr, mut asking: Asking) -> Outcome {
    let mut outcome = Outcome::default();
    let mut buffer = Vec::with_capacity(16 * 1024);
    while Instant::now() < asking.until {
        let Ok(mut stream) = TcpStream::connect(address).await else {
            outcome.wrong += 1;
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        stream.set_nodelay(true).expect("a connected socket");
        while Instant::now() < asking.until {
            let sent = Instant::now();
            if stream.write_all(asking.next()).await.is_err() || answer(&mut stream, &mut buffer).await.is_none() {
                outcome.wrong += 1;
                break;
            }
            outcome.requests += 1;
            outcome.wrong += u64::from(!buffer.starts_with(asking.status.as_bytes()));
            outcome.latencies.push(u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX));
        }
    }
    outcome
}

/// Reads one answer with a Content-Length.
pub(crate) async fn answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    buffer.clear();
    loop {
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
        if let Some(end) = memchr::memmem::find(buffer, b"\r\n\r\n") {
            let length = content_length(&buffer[..end])?;
            while buffer.len() < end + 4 + length {
                if stream.read_buf(buffer).await.ok()? == 0 {
                    return None;
                }
            }
            return Some(());
        }
    }
}

fn content_length(head: &[u8]) -> Option<usize> {
    let name = b"content-length:";
    let line = head
        .split(|byte| *byte == b'\n')
        .find(|line| line.len() > name.len() && line[..name.len()].eq_ignore_ascii_case(name))?;
    std::str::from_utf8(&line[name.len()..]).ok()?.trim().parse().ok()
}
