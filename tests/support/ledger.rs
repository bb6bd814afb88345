//! An application that records when each request reached it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::clock::Stopwatch;
use super::origin::Origin;

/// One request at the application, by the clock of the test.
#[derive(Clone, Debug)]
pub struct Arrival {
    pub target: String,
    /// The `X-Key` of it.
    pub key: String,
    /// When the client began to send it, as `X-Sent` says.
    pub sent: Duration,
    pub arrived: Duration,
}

/// Answers every request with 200 at once and records its arrival.
#[derive(Debug)]
pub struct Ledger {
    origin: Origin,
    arrivals: Arc<Mutex<Vec<Arrival>>>,
    since: Stopwatch,
}

impl Ledger {
    pub fn start() -> Self {
        Self::on(Ipv4Addr::LOCALHOST)
    }

    /// Listens on another address of this machine than 127.0.0.1.
    pub fn on(address: Ipv4Addr) -> Self {
        let since = Stopwatch::start();
        let arrivals = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&arrivals);
        let origin = Origin::scripted_on(address, move |mut exchange| {
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

    /// The clock of the arrivals.
    pub fn clock(&self) -> Stopwatch {
        self.since
    }

    pub fn arrivals(&self) -> Vec<Arrival> {
        self.arrivals.lock().expect("no panic here").clone()
    }

    /// The number of requests with this target.
    pub fn count(&self, target: &str) -> usize {
        self.arrivals.lock().expect("no panic here").iter().filter(|arrival| arrival.target == target).count()
    }
}

/// The most requests that were certainly decided within one window of this length.
///
/// When a request was decided is not seen at the application: between the decision and its arrival it was on its way,
/// one longer than the other, so arrivals alone may stand closer than decisions did. But each decision lies between the
/// moment its client began to send and the moment it arrived, both by one clock. So requests that were both sent and
/// received within a window were decided within it; counting those never accuses a gateway that is right, and on a
/// journey of milliseconds in windows of seconds misses next to nothing.
pub fn surely_decided_within(window: Duration, arrivals: &[&Arrival]) -> usize {
    // That clock is steady; the one Redis decides by may be slewed by 0.05 percent towards the right time.
    let window = window.mul_f64(0.999);
    let within = |from: Duration| {
        arrivals.iter().filter(|arrival| arrival.sent >= from && arrival.arrived < from + window).count()
    };
    arrivals.iter().map(|arrival| within(arrival.sent)).max().unwrap_or(0)
}
