//! The rounds: every proxy in turn, the same load on each.

use std::io::Read;
use std::io::Write;
use std::net::SocketAddr;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use super::job::JOBS;
use super::job::Job;
use super::job::Over;
use super::load;
use super::peer::Kind;
use super::peer::Peer;
use super::process::Cores;
use super::process::Process;
use super::table;

/// How long it is to take.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    pub(crate) round: Duration,
    /// Numbers of idle connections.
    pub(crate) idle: &'static [usize],
    pub(crate) starts: usize,
}

/// What was measured of one proxy.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) kind: Kind,
    /// Microseconds for each round, by job.
    pub(crate) cpu: Vec<Vec<f64>>,
    pub(crate) idle_kib: Vec<f64>,
    pub(crate) start_millis: Vec<f64>,
}

/// Measures everything and prints it; with a `word`, only what has it in its name.
pub(crate) fn run(plan: &Plan, kinds: &[Kind], word: Option<&str>) {
    let is_wanted = |job: &Job| word.is_none_or(|word| job.name.contains(word));
    let jobs: Vec<Job> = JOBS.into_iter().filter(is_wanted).collect();
    let idle: Vec<Job> = IDLE.into_iter().filter(is_wanted).collect();
    let starts = if word.is_none() { plan.starts } else { 0 };
    let (application, application_address) = Process::of_this_program(Cores::Second, &["application", "1"]);
    let row = |kind| Row { kind, cpu: vec![Vec::new(); jobs.len()], idle_kib: Vec::new(), start_millis: Vec::new() };
    let mut rows: Vec<Row> = installed(kinds).into_iter().map(row).collect();
    let peers: Vec<Peer> = rows.iter().map(|row| Peer::start(row.kind, &application_address)).collect();
    for peer in &peers {
        first_answer(peer.address, Instant::now());
    }
    for round in 0..plan.rounds {
        for (index, job) in jobs.iter().enumerate() {
            for (peer, row) in peers.iter().zip(&mut rows) {
                let spent = spent(peer, *job, plan.round, Cores::Second);
                eprintln!("round {round}, {}: {} {}", job.name, peer.kind.name(), spent.told);
                row.cpu[index].push(spent.micros);
            }
        }
    }
    drop(peers);
    if !jobs.is_empty() {
        table::print(plan, &jobs, &rows);
    }
    for row in &mut rows {
        for job in &idle {
            for count in plan.idle {
                let job = Job { connections: *count, ..*job };
                row.idle_kib.push(kib_per_idle_connection(row.kind, &application_address, job));
            }
        }
        for _ in 0..starts {
            let start = Instant::now();
            let peer = Peer::start(row.kind, &application_address);
            row.start_millis.push(first_answer(peer.address, start).as_secs_f64() * 1000.0);
        }
    }
    drop(application);
    if !idle.is_empty() {
        table::print_idle(plan, &idle, &rows);
    }
}

/// What idle connections have asked before.
const IDLE: [Job; 2] = [
    Job { goal: Some(8.0), ..Job::new("idle connection", "/plain", 200) },
    Job { over: Over::Tls, goal: Some(12.0), ..Job::new("idle connection with TLS", "/plain", 200) },
];

/// Those that can run here.
pub(crate) fn installed(kinds: &[Kind]) -> Vec<Kind> {
    let (installed, missing): (Vec<Kind>, Vec<Kind>) = kinds.iter().partition(|kind| kind.missing().is_none());
    for kind in missing {
        eprintln!("SKIPPED, {}: it is not installed", kind.name());
    }
    installed
}

/// What a load cost.
pub(crate) struct Spent {
    pub(crate) requests: f64,
    /// CPU time of the proxy for one request.
    pub(crate) micros: f64,
    /// How much of it the busiest thread of the proxy has spent, from 0 to 1.
    pub(crate) busiest: f64,
    pub(crate) told: String,
}

/// Runs the load for a round.
pub(crate) fn spent(peer: &Peer, job: Job, round: Duration, cores: Cores) -> Spent {
    let before = peer.process.cpu_times();
    let (load, told) = Process::of_this_program(cores, &["load", &peer.load(job, round, cores.count()).argument()]);
    let after = peer.process.cpu_times();
    drop(load);
    let spent = after.iter().map(|(thread, time)| time.saturating_sub(before.get(thread).copied().unwrap_or_default()));
    let spent: Vec<f64> = spent.map(|time| time.as_secs_f64()).collect();
    let total: f64 = spent.iter().sum();
    let mut numbers = told.split(' ').map(|number| number.parse::<u64>().expect("the load tells numbers"));
    let mut next = || numbers.next().expect("the load tells four numbers");
    let (requests, wrong, median, slow) = (next(), next(), next(), next());
    // The first request of a client is not refused yet, and a proxy may close a connection now and then.
    assert!(wrong <= 1 + requests / 1000, "{} of {requests} answers of {} were wrong", wrong, peer.kind.name());
    let micros = total * 1e6 / requests as f64;
    let rate = requests as f64 / round.as_secs_f64();
    Spent {
        requests: requests as f64,
        micros,
        busiest: spent.iter().fold(0.0, |most, time| time.max(most)) / total,
        told: format!("{micros:.2} us CPU, {rate:.0}/s, p50 {median} us, p99 {slow} us"),
    }
}

fn kib_per_idle_connection(kind: Kind, application: &str, job: Job) -> f64 {
    let peer = Peer::start(kind, application);
    first_answer(peer.address, Instant::now());
    let before = peer.process.resident_kib();
    let (clients, held) =
        Process::of_this_program(Cores::Second, &["idle", &peer.load(job, Duration::ZERO, 1).argument()]);
    assert_eq!(held, job.connections.to_string(), "{} held fewer connections", kind.name());
    // Idle for longer than between two clicks, among others that are not: an allocator gives memory back when it is
    // asked for some.
    thread::sleep(Duration::from_secs(3));
    for _ in 0..OTHER_REQUESTS {
        first_answer(peer.address, Instant::now());
    }
    thread::sleep(Duration::from_millis(300));
    let grown = peer.process.resident_kib().saturating_sub(before);
    drop(clients);
    grown as f64 / job.connections as f64
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
