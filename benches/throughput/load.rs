//! The load: keep-alive connections, each with one request under way at any time.

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

use super::measure::Job;

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

/// What is to be sent, for how long.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) address: SocketAddr,
    pub(crate) job: Job,
    pub(crate) lasts: Duration,
}

impl Load {
    /// As arguments of this program; [`Load::read`] reads them.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let Job { path, status, clients, connections, sends, .. } = self.job;
        let numbers = [self.lasts.as_micros(), clients as u128, connections as u128, sends as u128];
        let texts = [self.address.to_string(), path.to_owned(), status.to_owned()];
        texts.into_iter().chain(numbers.map(|number| number.to_string())).collect()
    }

    pub(crate) fn read(arguments: &[&'static str]) -> Self {
        let [address, path, status, lasts, clients, connections, sends] = arguments else {
            panic!("seven words say what the load is, not {}", arguments.len())
        };
        let count = |word: &str| word.parse().expect("a number");
        let (clients, connections, sends) = (count(clients), count(connections), count(sends));
        Self {
            address: address.parse().expect("an address"),
            job: Job { name: "", path, status, clients, connections, sends },
            lasts: Duration::from_micros(lasts.parse().expect("a number")),
        }
    }
}

/// Runs the load and prints what came of it in one line.
pub(crate) fn run(load: &Load) {
    let job = load.job;
    let head = match (job.clients, job.sends) {
        (0, 0) => request(job.path),
        (0, sends) => request_with_body(job.path, sends),
        _ => request_with_key(job.path),
    };
    let asked = Arc::new(AtomicUsize::new(0));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let outcome = runtime.block_on(async {
        let start = Instant::now();
        let mut running = JoinSet::new();
        for _ in 0..job.connections {
            let asking = Asking {
                head: head.clone(),
                clients: job.clients,
                asked: Arc::clone(&asked),
                status: format!("HTTP/1.1 {} ", job.status),
                until: start + load.lasts,
            };
            running.spawn(ask(load.address, asking));
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

/// Reads one answer with a Content-Length, and keeps its head.
pub(crate) async fn answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
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
