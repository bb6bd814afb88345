//! The application behind the gateway: it records every byte and answers as the test says.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::thread::JoinHandle;
use std::time::Duration;

use super::clock::PATIENCE;
use super::message::{Headers, Wire, split_head};

/// Of each connection so many raw bytes are kept.
const KEPT: usize = 8 * 1024 * 1024;

/// One request as the application saw it.
#[derive(Clone, Debug, Default)]
pub struct Received {
    pub method: String,
    pub target: String,
    pub headers: Headers,
    /// The head as it came, blank line included.
    pub head: String,
    /// The first 4 MiB.
    pub body: Vec<u8>,
    pub body_length: u64,
    pub body_digest: u64,
    pub trailers: Headers,
    /// False when the connection ended before the body did.
    pub whole: bool,
}

impl Received {
    #[track_caller]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The answer to one request.
#[derive(Clone, Debug)]
#[must_use]
pub struct Answer {
    bytes: Vec<u8>,
    delay: Duration,
    closes: bool,
}

impl Answer {
    pub fn ok(body: impl AsRef<[u8]>) -> Self {
        Self::new(200, &[], body)
    }

    pub fn new(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let mut head = format!("HTTP/1.1 {status} Said\r\n");
        for (name, value) in headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        if !matches!(status, 204 | 304) {
            head.extend(["Content-Length: ", &body.len().to_string(), "\r\n"]);
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body);
        Self::raw(bytes)
    }

    /// Exactly these bytes.
    pub fn raw(bytes: impl AsRef<[u8]>) -> Self {
        Self { bytes: bytes.as_ref().to_vec(), delay: Duration::ZERO, closes: false }
    }

    /// Closes the connection without an answer.
    pub fn silence() -> Self {
        Self::raw("").closing()
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    pub fn closing(mut self) -> Self {
        self.closes = true;
        self
    }
}

/// One connection to the application, for scripts that do more than answer.
#[derive(Debug)]
pub struct Exchange {
    wire: Wire<Recorder>,
    record: Arc<Record>,
}

impl Exchange {
    /// The head of the next request. It is recorded before its body is read.
    pub fn head(&mut self) -> Option<Received> {
        let head = self.wire.head().ok()?;
        let (first, headers) = split_head(&head);
        let mut words = first.split(' ').map(str::to_owned);
        let received = Received {
            method: words.next().unwrap_or_default(),
            target: words.next().unwrap_or_default(),
            headers,
            head: head.clone(),
            ..Received::default()
        };
        self.record.heads.lock().expect("no panic here").push(received.clone());
        Some(received)
    }

    /// Reads the body of a request, and answers `Expect: 100-continue` with 100.
    pub fn body(&mut self, received: &mut Received) {
        if received.header("expect").is_some() {
            self.write("HTTP/1.1 100 Continue\r\n\r\n");
        }
        let (body, trailers, whole) = self.wire.body(&received.headers, false);
        received.body_digest = body.digest.finish();
        received.body_length = body.length;
        received.body = body.kept;
        received.trailers = trailers;
        received.whole = whole;
        self.record.requests.lock().expect("no panic here").push(received.clone());
    }

    /// The next request with its body.
    pub fn request(&mut self) -> Option<Received> {
        let mut received = self.head()?;
        self.body(&mut received);
        received.whole.then_some(received)
    }

    /// Writes these bytes. Returns false if the connection is closed.
    pub fn write(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.wire.stream.stream.write_all(bytes.as_ref()).is_ok()
    }

    /// Waits until the client closes the connection. Returns false if it does not.
    pub fn client_has_left(&mut self) -> bool {
        while self.wire.fill().is_ok() {}
        !self.wire.stream.timed_out
    }

    /// Does nothing for so long, or until the test is over.
    pub fn pause(&self, span: Duration) {
        let stopped = self.record.stopped.lock().expect("no panic here");
        drop(self.record.stops.wait_timeout_while(stopped, span, |stopped| !*stopped));
    }

    /// The socket, for another protocol to go on with.
    pub fn into_stream(self) -> TcpStream {
        self.wire.stream.stream
    }
}

#[derive(Debug)]
struct Recorder {
    stream: TcpStream,
    connection: usize,
    record: Arc<Record>,
    timed_out: bool,
}

impl Read for Recorder {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let outcome = self.stream.read(buffer);
        match &outcome {
            Ok(length) => {
                let mut bytes = self.record.bytes.lock().expect("no panic here");
                let kept = &mut bytes[self.connection];
                let room = KEPT.saturating_sub(kept.len()).min(*length);
                kept.extend_from_slice(&buffer[..room]);
            }
            Err(error) => self.timed_out = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        }
        outcome
    }
}

#[derive(Debug, Default)]
struct Record {
    heads: Mutex<Vec<Received>>,
    requests: Mutex<Vec<Received>>,
    bytes: Mutex<Vec<Vec<u8>>>,
    open: Mutex<Vec<Option<TcpStream>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    stopped: Mutex<bool>,
    stops: Condvar,
}

/// A server on a free port, until it is dropped.
#[derive(Debug)]
pub struct Origin {
    address: SocketAddr,
    record: Arc<Record>,
    acceptor: Option<JoinHandle<()>>,
}

impl Origin {
    /// Answers everything with 200 and the body `origin`.
    pub fn start() -> Self {
        Self::answering(|_| Answer::ok("origin"))
    }

    /// Answers each request when it is complete.
    pub fn answering(answer: impl Fn(&Received) -> Answer + Send + Sync + 'static) -> Self {
        Self::scripted(move |mut exchange| {
            while let Some(received) = exchange.request() {
                let answer = answer(&received);
                exchange.pause(answer.delay);
                if !exchange.write(&answer.bytes) || answer.closes {
                    return;
                }
            }
        })
    }

    /// Runs a script for each connection.
    pub fn scripted(script: impl Fn(Exchange) + Send + Sync + 'static) -> Self {
        Self::scripted_on(Ipv4Addr::LOCALHOST, script)
    }

    /// The same on another address of this machine.
    pub fn scripted_on(address: Ipv4Addr, script: impl Fn(Exchange) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((address, 0)).expect("a free port");
        Self::on(listener, script)
    }

    /// Answers everything with 200, on the address of an earlier origin.
    pub fn start_on(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).expect("the port is free again");
        Self::on(listener, |mut exchange| {
            while exchange.request().is_some() && exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nback") {}
        })
    }

    fn on(listener: TcpListener, script: impl Fn(Exchange) + Send + Sync + 'static) -> Self {
        let address = listener.local_addr().expect("a bound socket");
        let record = Arc::new(Record::default());
        let acceptor = thread::spawn({
            let record = Arc::clone(&record);
            let script = Arc::new(script);
            move || {
                for stream in listener.incoming() {
                    if *record.stopped.lock().expect("no panic here") {
                        return;
                    }
                    let Ok(stream) = stream else { continue };
                    accept(stream, &record, Arc::clone(&script));
                }
            }
        });
        Self { address, record, acceptor: Some(acceptor) }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request, complete or cut short in its body.
    pub fn requests(&self) -> Vec<Received> {
        self.record.requests.lock().expect("no panic here").clone()
    }

    /// Every head, with or without its body.
    pub fn heads(&self) -> Vec<Received> {
        self.record.heads.lock().expect("no panic here").clone()
    }

    pub fn count(&self) -> usize {
        self.record.heads.lock().expect("no panic here").len()
    }

    #[track_caller]
    pub fn last(&self) -> Received {
        self.requests().pop().expect("a request reached the origin")
    }

    /// The bytes of every connection, one after the other.
    pub fn bytes(&self) -> String {
        let bytes = self.record.bytes.lock().expect("no panic here");
        String::from_utf8_lossy(&bytes.concat()).into_owned()
    }

    /// The bytes of each connection.
    pub fn streams(&self) -> Vec<Vec<u8>> {
        self.record.bytes.lock().expect("no panic here").clone()
    }

    pub fn connections(&self) -> usize {
        self.record.bytes.lock().expect("no panic here").len()
    }

    /// Closes every connection, and goes on accepting new ones.
    pub fn hang_up(&self) {
        for stream in self.record.open.lock().expect("no panic here").iter().flatten() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn accept(stream: TcpStream, record: &Arc<Record>, script: Arc<impl Fn(Exchange) + Send + Sync + 'static>) {
    stream.set_nodelay(true).expect("a connected socket");
    stream.set_read_timeout(Some(PATIENCE * 3)).expect("a timeout above zero");
    let mut open = record.open.lock().expect("no panic here");
    let connection = open.len();
    open.push(stream.try_clone().ok());
    drop(open);
    record.bytes.lock().expect("no panic here").push(Vec::new());
    let recorder = Recorder { stream, connection, record: Arc::clone(record), timed_out: false };
    let exchange = Exchange { wire: Wire::new(recorder), record: Arc::clone(record) };
    let record_of_thread = Arc::clone(record);
    let thread = thread::spawn(move || {
        script(exchange);
        // The clone would keep the connection open.
        record_of_thread.open.lock().expect("no panic here")[connection] = None;
    });
    record.threads.lock().expect("no panic here").push(thread);
}

impl Drop for Origin {
    fn drop(&mut self) {
        *self.record.stopped.lock().expect("no panic here") = true;
        self.record.stops.notify_all();
        let _ = TcpStream::connect(self.address);
        let mut outcomes = vec![self.acceptor.take().expect("dropped once").join()];
        self.hang_up();
        // In a test that fails, they may wait for what the test does not do any more.
        if thread::panicking() {
            return;
        }
        let threads = std::mem::take(&mut *self.record.threads.lock().expect("no panic here"));
        outcomes.extend(threads.into_iter().map(JoinHandle::join));
        assert!(outcomes.iter().all(Result::is_ok), "a thread of the origin panicked");
    }
}
