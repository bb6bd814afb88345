//! The rounds: every proxy in turn, the same load on each.

use std::io::Read;
use std::io::Write;
use std::net::SocketAddr;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use super::load;
use super::load::Load;
use super::peer::Kind;
use super::peer::Peer;
use super::process::Process;
use super::table;
use super::table::Row;

/// How long it is to take.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    pub(crate) round: Duration,
    /// Numbers of idle connections.
    pub(crate) idle: &'static [usize],
    pub(crate) starts: usize,
}

/// What is asked of the proxies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) name: &'static str,
    pub(crate) path: &'static str,
    pub(crate) status: &'static str,
    /// How many keys of clients take turns; none: requests name no client.
    pub(crate) clients: usize,
    pub(crate) connections: usize,
    /// Bytes of a body.
    pub(crate) sends: usize,
}

impl Job {
    /// What most jobs are: 64 keep-alive connections, small requests of nobody in particular.
    pub(crate) const fn new(name: &'static str, path: &'static str, status: &'static str) -> Self {
        Self { name, path, status, clients: 0, connections: 64, sends: 0 }
    }
}

pub(crate) const JOBS: [Job; 5] = [
    Job::new("proxied, a limit that does not bind", "/", "200"),
    Job::new("refused with 429", "/refused", "429"),
    Job { connections: 4, ..Job::new("proxied, 4 connections", "/", "200") },
    Job { connections: 16, ..Job::new("1 MiB down", LARGE, "200") },
    Job { connections: 16, sends: 1 << 20, ..Job::new("1 MiB up", "/", "200") },
];

/// Where the application answers with 1 MiB.
pub(crate) const LARGE: &str = "/large";

/// Measures everything and prints it.
pub(crate) fn run(plan: &Plan, kinds: &[Kind]) {
    let (application, application_address) = Process::of_this_program(&["application".to_owned()]);
    let (installed, missing): (Vec<Kind>, Vec<Kind>) = kinds.iter().partition(|kind| kind.missing().is_none());
    for kind in &missing {
        println!("SKIPPED, {}: it is not installed", kind.name());
    }
    let mut rows: Vec<Row> = installed.iter().map(|kind| Row::new(*kind)).collect();
    let peers: Vec<Peer> = installed.iter().map(|kind| Peer::start(*kind, &application_address)).collect();
    for peer in &peers {
        first_answer(peer.address, Instant::now());
    }
    for round in 0..plan.rounds {
        for (index, job) in JOBS.iter().enumerate() {
            for (peer, row) in peers.iter().zip(&mut rows) {
                let spent = cpu_per_request(peer, *job, plan.round);
                println!("round {round}, {}: {} {}", job.name, peer.kind.name(), spent.told);
                row.cpu[index].push(spent.micros);
            }
        }
    }
    drop(peers);
    for row in &mut rows {
        for count in plan.idle {
            row.idle_kib.push(kib_per_idle_connection(row.kind, &application_address, *count));
        }
        for _ in 0..plan.starts {
            let start = Instant::now();
            let peer = Peer::start(row.kind, &application_address);
            row.start_millis.push(first_answer(peer.address, start).as_secs_f64() * 1000.0);
        }
    }
    drop(application);
    table::print(plan, &rows);
}

/// CPU time of a proxy for one request.
pub(crate) struct Spent {
    pub(crate) requests: f64,
    pub(crate) micros: f64,
    pub(crate) told: String,
}

/// Runs the load for a round.
pub(crate) fn cpu_per_request(peer: &Peer, job: Job, round: Duration) -> Spent {
    let load = Load { address: peer.address, job, lasts: round };
    let before = peer.process.cpu_time();
    let (load, told) = Process::of_this_program(&[&["load".to_owned()], &load.arguments()[..]].concat());
    let spent = peer.process.cpu_time().saturating_sub(before);
    drop(load);
    let mut numbers = told.split(' ').map(|number| number.parse::<u64>().expect("the load tells numbers"));
    let mut next = || numbers.next().expect("the load tells four numbers");
    let (requests, wrong, median, slow) = (next(), next(), next(), next());
    // The first request of all is not refused yet, and a proxy may close a connection now and then.
    assert!(wrong <= 1 + requests / 1000, "{} of {requests} answers of {} were wrong", wrong, peer.kind.name());
    let micros = spent.as_secs_f64() * 1e6 / requests as f64;
    let rate = requests as f64 / round.as_secs_f64();
    Spent {
        requests: requests as f64,
        micros,
        told: format!("{micros:.2} us CPU, {rate:.0}/s, p50 {median} us, p99 {slow} us"),
    }
}

fn kib_per_idle_connection(kind: Kind, application: &str, count: usize) -> f64 {
    let peer = Peer::start(kind, application);
    first_answer(peer.address, Instant::now());
    let before = peer.process.resident_kib();
    let (clients, held) = Process::of_this_program(&["idle".to_owned(), peer.address.to_string(), count.to_string()]);
    assert_eq!(held, count.to_string(), "{} held fewer connections", kind.name());
    // Idle for longer than between two clicks, among others that are not: an allocator gives memory back when it is
    // asked for some.
    thread::sleep(Duration::from_secs(3));
    for _ in 0..OTHER_REQUESTS {
        first_answer(peer.address, Instant::now());
    }
    thread::sleep(Duration::from_millis(300));
    let grown = peer.process.resident_kib().saturating_sub(before);
    drop(clients);
    grown as f64 / count as f64
}

/// Requests of others while connections are idle.
const OTHER_REQUESTS: usize = 300;

/// Time until a proxy answers a first request.
pub(crate) fn first_answer(address: SocketAddr, start: Instant) -> Duration {
    let head = load::request("/");
    loop {
        if let Ok(mut stream) = TcpStream::connect(address) {
            let mut status = [0; 12];
            stream.write_all(&head).expect("an open connection");
            stream.read_exact(&mut status).expect("an answer");
            assert_eq!(&status, b"HTTP/1.1 200", "the proxy at {address} does not forward");
            return start.elapsed();
        }
        assert!(start.elapsed() < Duration::from_secs(10), "nobody listens on {address}");
        thread::sleep(Duration::from_micros(200));
    }
}
