//! An application that writes down when each request reached it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use super::clock::Stopwatch;
use super::origin::Origin;

/// One request at the application, by the clock of the test.
#[derive(Clone, Debug)]
pub struct Arrival {
    pub target: String,
    /// The `X-Key` of it.
    pub key: String,
    /// When the client began to send it, as the client said.
    pub sent: Duration,
    pub arrived: Duration,
}

/// Answers everything with 200 at once, and keeps a line about each request.
#[derive(Debug)]
pub struct Ledger {
    origin: Origin,
    arrivals: Arc<Mutex<Vec<Arrival>>>,
    since: Stopwatch,
}

impl Ledger {
    pub fn start() -> Self {
        let since = Stopwatch::start();
        let arrivals = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&arrivals);
        let origin = Origin::conversing(move |mut exchange| {
            while let Some(head) = exchange.head() {
                let arrived = since.elapsed();
                let sent = head.header("x-sent").and_then(|sent| sent.parse().ok()).unwrap_or_default();
                let key = head.header("x-key").unwrap_or_default().to_owned();
                let line = Arrival { target: head.target, key, sent: Duration::from_micros(sent), arrived };
                lines.lock().expect("no panic here").push(line);
                if !exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") {
                    return;
                }
            }
        });
        Self { origin, arrivals, since }
    }

    pub fn url(&self) -> String {
        self.origin.url()
    }

    pub fn address(&self) -> SocketAddr {
        self.origin.address()
    }

    /// The clock that arrivals are told by.
    pub fn clock(&self) -> Stopwatch {
        self.since
    }

    pub fn arrivals(&self) -> Vec<Arrival> {
        self.arrivals.lock().expect("no panic here").clone()
    }

    /// How many requests with this target came.
    pub fn count(&self, target: &str) -> usize {
        self.arrivals.lock().expect("no panic here").iter().filter(|arrival| arrival.target == target).count()
    }
}
