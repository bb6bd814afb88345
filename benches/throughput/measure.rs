//! The rounds: every proxy in turn, the same load on each.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use super::job::{JOBS, Job, Over};
use super::load::Ends;
use super::peer::{Peer, Start};
use super::process::{Cores, Process};
use super::proxy::{Proxy, Setup};
use super::{load, table};

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
    pub(crate) proxy: Proxy,
    /// Microseconds for each round, by job.
    pub(crate) cpu: Vec<Vec<f64>>,
    pub(crate) idle_kib: Vec<f64>,
    pub(crate) start_millis: Vec<f64>,
}

/// Measures everything and prints it; with a `word`, only what has it in its name.
pub(crate) fn run(plan: &Plan, proxies: &[Proxy], word: Option<&str>) {
    let is_wanted = |job: &Job| word.is_none_or(|word| job.name.contains(word));
    let jobs: Vec<Job> = JOBS.into_iter().filter(is_wanted).collect();
    let idle: Vec<Job> = IDLE.into_iter().filter(is_wanted).collect();
    let starts = if word.is_none() { plan.starts } else { 0 };
    let row = |proxy| Row { proxy, cpu: vec![Vec::new(); jobs.len()], idle_kib: Vec::new(), start_millis: Vec::new() };
    let mut rows: Vec<Row> = installed(proxies, Setup::Limits).into_iter().map(row).collect();
    // One for each proxy: none has the descriptors, or the ports, for the connections of all of them.
    let application = |_: &Row| Process::of_this_program(Cores::Second, &["application", "1"]);
    let applications: Vec<(Process, String)> = rows.iter().map(application).collect();
    run_rounds(plan, &jobs, &mut rows, &applications);
    if !jobs.is_empty() {
        table::print(plan, &jobs, &rows);
    }
    for (row, (_, address)) in rows.iter_mut().zip(&applications) {
        let start = Start::new(row.proxy, Setup::Limits, address);
        for job in &idle {
            for count in plan.idle {
                let job = Job { connections: *count, ..*job };
                row.idle_kib.push(kib_per_idle_connection(start, job));
            }
        }
        for _ in 0..starts {
            let begun = Instant::now();
            let peer = Peer::start(start);
            row.start_millis.push(first_answer(peer.address, begun).as_secs_f64() * 1000.0);
        }
    }
    drop(applications);
    if !idle.is_empty() {
        table::print_idle(plan, &idle, &rows);
    }
}

/// Every proxy runs all the time, in each setup that a job needs.
fn run_rounds(plan: &Plan, jobs: &[Job], rows: &mut [Row], applications: &[(Process, String)]) {
    let mut peers: Vec<Peer> = Vec::new();
    for job in jobs {
        if peers.iter().all(|peer| peer.setup != job.setup) {
            for (row, (_, application)) in rows.iter().zip(applications) {
                peers.push(Peer::start(Start::new(row.proxy, job.setup, application)));
            }
        }
    }
    for peer in &peers {
        first_answer(peer.address, Instant::now());
    }
    for round in 0..plan.rounds {
        for (index, job) in jobs.iter().enumerate() {
            for (peer, row) in peers.iter().filter(|peer| peer.setup == job.setup).zip(&mut *rows) {
                let spent = spent(peer, *job, plan.round, Cores::Second);
                eprintln!("round {round}, {}: {} {}", job.name, peer.proxy.name, spent.told);
                row.cpu[index].push(spent.micros);
            }
        }
    }
}

/// What idle connections have asked before.
const IDLE: [Job; 2] = [
    Job { goal: Some(8.0), ..Job::new("idle connection", "/plain", 200) },
    Job { over: Over::Tls, goal: Some(12.0), ..Job::new("idle connection with TLS", "/plain", 200) },
];

/// Those that can do it here.
pub(crate) fn installed(proxies: &[Proxy], setup: Setup) -> Vec<Proxy> {
    let is_installed = |proxy: &Proxy| match proxy.missing(setup) {
        None => true,
        Some(needed) => {
            eprintln!("SKIPPED, {}: {needed} is not installed", proxy.name);
            false
        }
    };
    proxies.iter().copied().filter(is_installed).collect()
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
    let (mut before, mut opened) = (peer.process.cpu_times(), connections_opened());
    let (mut load, mut told) =
        Process::of_this_program(cores, &["load", &peer.load(job, Ends::After(round), cores.count()).argument()]);
    if !job.warm_up().is_zero() {
        (before, opened) = (peer.process.cpu_times(), connections_opened());
        told = load.next_line();
    }
    let after = peer.process.cpu_times();
    let opened = connections_opened() - opened;
    drop(load);
    let spent = after.iter().map(|(thread, time)| time.saturating_sub(before.get(thread).copied().unwrap_or_default()));
    let spent: Vec<f64> = spent.map(|time| time.as_secs_f64()).collect();
    let total: f64 = spent.iter().sum();
    let Told { requests, wrong, median, slow } = Told::read(&told);
    // The first request of a client is not refused yet, and a proxy may close a connection now and then.
    assert!(wrong <= 1 + requests / 1000, "{} of {requests} answers of {} were wrong", wrong, peer.proxy.name);
    let micros = total * 1e6 / requests as f64;
    let rate = requests as f64 / round.as_secs_f64();
    Spent {
        requests: requests as f64,
        micros,
        busiest: spent.iter().fold(0.0, |most, time| time.max(most)) / total,
        told: format!(
            "{micros:.2} us CPU, {rate:.0}/s, p50 {median} us, p99 {slow} us, {opened} connections opened in {requests} requests"
        ),
    }
}

/// How many TCP connections were opened on this machine since it started.
fn connections_opened() -> u64 {
    let counts = fs::read_to_string("/proc/net/snmp").expect("the kernel counts");
    let mut lines = counts.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, numbers) = (lines.next().expect("names"), lines.next().expect("numbers"));
    let place = names.split(' ').position(|name| name == "ActiveOpens").expect("a count of connections");
    numbers.split(' ').nth(place).and_then(|number| number.parse().ok()).expect("a number")
}

/// What a load prints when it has ended.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) requests: u64,
    pub(crate) wrong: u64,
    /// Microseconds, like `slow`.
    median: u64,
    slow: u64,
}

impl Told {
    pub(crate) fn read(line: &str) -> Self {
        let mut numbers = line.split(' ').map(|number| number.parse::<u64>().expect("the load tells numbers"));
        let mut next = || numbers.next().expect("the load tells four numbers");
        Self { requests: next(), wrong: next(), median: next(), slow: next() }
    }
}

fn kib_per_idle_connection(start: Start<'_>, job: Job) -> f64 {
    let peer = Peer::start(start);
    first_answer(peer.address, Instant::now());
    let before = peer.process.resident_kib();
    let load = peer.load(job, Ends::Requests(job.connections), 1);
    let (clients, held) = Process::of_this_program(Cores::Second, &["idle", &load.argument()]);
    assert_eq!(held, job.connections.to_string(), "{} held fewer connections", peer.proxy.name);
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
    let request = load::page_request("/");
    loop {
        // A proxy that begins may also close a connection: it opens its sockets a second time, one for each core.
        if let Ok(status) = status(address, &request) {
            assert_eq!(&status, b"HTTP/1.1 200", "the proxy at {address} does not forward");
            return start.elapsed();
        }
        assert!(start.elapsed() < Duration::from_secs(60), "nobody listens on {address}");
        thread::sleep(Duration::from_micros(200));
    }
}

fn status(address: SocketAddr, request: &[u8]) -> io::Result<[u8; 12]> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(request)?;
    let mut status = [0; 12];
    stream.read_exact(&mut status)?;
    Ok(status)
}
