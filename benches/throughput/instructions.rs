//! What a request takes, counted by valgrind: the same on a quiet machine and on a busy one. Instructions, allocations and
//! misses of simulated caches are counted by callgrind, and copied bytes by DHAT.
//!
//! One connection asks, one request after the other. What a proxy does at its start is not counted: the entropy that it
//! gathers takes hundreds of millions of instructions, never the same number.

mod dump;
mod expected;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, iter, thread};

pub(crate) use self::dump::Counts;
use super::job::{COUNTED, Job};
use super::load::Ends;
use super::measure::Told;
use super::options::Counting;
use super::peer::{Peer, Start};
use super::process::{Cores, Process, is_installed};
use super::proxy::{Proxy, Setup};
use super::redis::Redis;
use super::{measure, table};

/// What was counted for one job.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// One for each proxy.
    pub(crate) counts: Vec<Counts>,
}

/// Counts and prints it; with a `word`, only jobs that have it in their names.
pub(crate) fn run(proxies: &[Proxy], word: Option<&str>, counting: Counting) {
    assert!(is_installed("valgrind"), "instructions are counted by valgrind, which is not installed");
    let is_wanted = |job: &Job| word.is_none_or(|word| job.name.contains(word));
    let jobs: Vec<Job> = COUNTED.into_iter().filter(is_wanted).collect();
    let proxies = measure::installed(proxies, COUNTED[0].setup);
    let (application, address) = Process::of_this_program(Cores::Both, &["application", "1"]);
    let next = AtomicUsize::new(0);
    // Each core takes the next job until none is left.
    let count_on = |cores| {
        let jobs = iter::from_fn(|| jobs.get(next.fetch_add(1, Ordering::Relaxed)));
        jobs.map(|job| row(cores, &proxies, &address, *job)).collect::<Vec<Row>>()
    };
    let mut rows = thread::scope(|scope| {
        let second = scope.spawn(|| count_on(Cores::Second));
        [count_on(Cores::First), second.join().expect("no panic in a thread")].concat()
    });
    rows.sort_by_key(|row| jobs.iter().position(|job| job.name == row.name));
    drop(application);
    table::print_instructions(&proxies, &rows);
    eprintln!("`callgrind_annotate FILE` says where they went. The files are in {}.", folder().display());
    if counting == Counting::Hold {
        expected::hold(&rows);
    }
}

fn row(cores: Cores, proxies: &[Proxy], application: &str, job: Job) -> Row {
    let count = |proxy: &Proxy| {
        let redis = (job.setup == Setup::Redis).then(Redis::start);
        let port = redis.as_ref().map_or(0, |redis| redis.address.port()).to_string();
        let words = &[("REDIS_PORT", &*port)];
        let count = per_request(Start { cores, words, ..Start::new(*proxy, job.setup, application) }, job);
        eprintln!("{}: {} {count}", job.name, proxy.name);
        count
    };
    Row { name: job.name, counts: proxies.iter().map(count).collect() }
}

/// Requests of three loads, one after the other. What a proxy does once falls into the first, which does not count. The
/// others open a connection each, so that their difference is what the further requests took.
fn loads(job: Job) -> [u32; 3] {
    let crowd = u32::try_from(job.connections).expect("a small number");
    match (job.status, crowd) {
        // portcullis keeps the newest 10,000 denials, and uses their memory for later ones from then on.
        (429, _) => [10_500, 200, 1200],
        (_, 1) => [200, 100, 600],
        (_, crowd) => [4 * crowd, crowd, 3 * crowd],
    }
}

fn per_request(start: Start<'_>, job: Job) -> Counts {
    let files = folder().join(format!("{} {}", start.proxy.name, job.name).replace('/', "-"));
    let _ = fs::remove_dir_all(&files);
    fs::create_dir_all(&files).expect("a folder for what callgrind writes");
    let out = format!("--callgrind-out-file={}/%p", files.display());
    let mut under = vec!["valgrind", "--tool=callgrind", &out];
    under.extend(CACHES);
    let peer = begin(Start { under: &under, ..start }, job);
    let mut part = 0;
    let [first, less, more] = loads(job);
    let [_, few, many] = [first, less, more].map(|requests| {
        part += 1;
        send(&peer, job, requests, start.cores);
        // nginx has two processes.
        let pids = peer.process.family();
        pids.iter().map(|pid| dump(*pid, &files.join(format!("{pid}.{part}")))).sum::<Counts>()
    });
    drop(peer);
    let copied = |requests| copied(start, job, &files.join(format!("copies {requests}")), requests);
    let copied = copied(more) - copied(less);
    Counts { copied, ..many - few }.per_request(more - less)
}

/// How many bytes a proxy copies from its start to its end, with so many requests between.
fn copied(start: Start<'_>, job: Job, file: &Path, requests: u32) -> f64 {
    let out = format!("--dhat-out-file={}", file.display());
    let peer = begin(Start { under: &["valgrind", "--tool=dhat", "--mode=copy", &out], ..start }, job);
    send(&peer, job, requests, start.cores);
    let Peer { mut process, .. } = peer;
    // valgrind ends with the proxy, and writes the file before.
    assert!(process.stop(Duration::from_secs(60)), "the proxy does not end");
    dump::copied(&fs::read_to_string(file).expect("what DHAT has written")).expect("the format of DHAT")
}

/// Starts a proxy, with what a job needs before.
fn begin(start: Start<'_>, job: Job) -> Peer {
    let peer = Peer::start(start);
    measure::first_answer(peer.address, Instant::now());
    if let Some(path) = job.sign_in {
        send(&peer, Job { path, ..job }, 1, start.cores);
    }
    peer
}

fn send(peer: &Peer, job: Job, requests: u32, cores: Cores) {
    let ends = Ends::Requests(usize::try_from(requests).expect("a small number"));
    let (load, told) = Process::of_this_program(cores, &["load", &peer.load(job, ends, 1).argument()]);
    drop(load);
    let Told { requests: asked, wrong, .. } = Told::read(&told);
    // The first request of a client is not refused yet.
    assert!(asked == u64::from(requests) && wrong <= 1, "{wrong} of {asked} answers of {} were wrong", peer.proxy.name);
}

/// Has callgrind write what a process took since it wrote last, which begins a new count.
fn dump(pid: u32, file: &Path) -> Counts {
    let status = Command::new("vgdb").args([&format!("--pid={pid}"), "dump"]).stderr(Stdio::null()).status();
    assert!(status.expect("a part of valgrind").success(), "callgrind does not hear");
    Counts::read(&fs::read_to_string(file).expect("what callgrind has written")).expect("the format of callgrind")
}

/// The caches that are simulated, whatever this machine has: in bytes, the ways, and the bytes of a line.
const CACHES: [&str; 4] = ["--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("callgrind")
}
