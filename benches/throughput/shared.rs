//! One limit that is decided in Redis: portcullis beside nginx with its Lua module, each with a Redis of its own.
//!
//! What nginx has Redis do for a request is what portcullis has it do: the same script with the same arguments, as
//! overheard between portcullis and its Redis. The proxy and its Redis share a core, so that requests per second say what
//! both cost together.

use std::time::Instant;

use super::job::{Clients, Job};
use super::measure::Plan;
use super::peer::{Peer, Start};
use super::process::{Cores, Process};
use super::proxy::{Proxy, Setup};
use super::redis::Redis;
use super::{measure, redis, table};

/// What was measured of one proxy and its Redis, a number for each round.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) proxy: Proxy,
    /// Microseconds.
    pub(crate) proxy_cpu: Vec<f64>,
    pub(crate) redis_cpu: Vec<f64>,
    pub(crate) per_second: Vec<f64>,
}

/// So many clients ask in turn: each within its limit, and with a log of realistic length.
const JOB: Job =
    Job { clients: Clients::Keys(10_000), ..Job::new("proxied, a limit in Redis that does not bind", "/", 200) };

/// Measures nginx and these builds of portcullis and prints it.
pub(crate) fn run(plan: &Plan, binaries: &[Proxy]) {
    if let Some(needed) = Proxy::PORTCULLIS.missing(Setup::Redis) {
        eprintln!("SKIPPED, the table of limits in Redis: {needed} is not installed");
        return;
    }
    let (application, application_address) = Process::of_this_program(Cores::Second, &["application", "1"]);
    let mut peers = Vec::new();
    for proxy in binaries {
        let redis = Redis::start();
        let overheard = peers.is_empty().then(|| redis.overheard());
        let peer = start(*proxy, &application_address, &redis, &[]);
        measure::first_answer(peer.address, Instant::now());
        if let Some(overheard) = overheard
            && let Some(lua) = start_lua(&application_address, &Decision::among(overheard, &redis))
        {
            peers.push(lua);
        }
        peers.push((peer, redis));
    }
    let mut rows: Vec<Row> = peers.iter().map(|(peer, _)| Row::new(peer.proxy)).collect();
    for round in 0..plan.rounds {
        for ((peer, redis), row) in peers.iter().zip(&mut rows) {
            let before = redis.process.cpu_time();
            let spent = measure::spent(peer, JOB, plan.round, Cores::Second);
            let redis_cpu = redis.process.cpu_time().saturating_sub(before).as_secs_f64() * 1e6 / spent.requests;
            eprintln!("round {round}, {}: {} {}, Redis {redis_cpu:.2} us CPU", JOB.name, peer.proxy.name, spent.told);
            row.proxy_cpu.push(spent.micros);
            row.redis_cpu.push(redis_cpu);
            row.per_second.push(spent.requests / plan.round.as_secs_f64());
        }
    }
    for (peer, redis) in &peers {
        let (keys, memory) = (redis.ask(&[b"DBSIZE"]), redis.used_memory());
        eprintln!("{}: {} keys in its Redis, {memory} bytes", peer.proxy.name, keys.trim_start_matches(':'));
    }
    drop((peers, application));
    table::print_shared(plan, &rows);
}

impl Row {
    fn new(proxy: Proxy) -> Self {
        Self { proxy, proxy_cpu: Vec::new(), redis_cpu: Vec::new(), per_second: Vec::new() }
    }
}

fn start(proxy: Proxy, application: &str, redis: &Redis, files: &[(&str, &[u8])]) -> Peer {
    let words = &[("REDIS_PORT", &*redis.address.port().to_string())];
    Peer::start(Start { words, files, ..Start::new(proxy, Setup::Redis, application) })
}

/// nginx that has a Redis of its own do the same, where its Lua module is installed.
fn start_lua(application: &str, decision: &Decision) -> Option<(Peer, Redis)> {
    let [nginx] = measure::installed(&[Proxy::NGINX], Setup::Redis)[..] else { return None };
    let redis = Redis::start();
    let files = decision.for_lua(&redis);
    let files = files.each_ref().map(|(name, content)| (*name, &content[..]));
    let peer = start(nginx, application, &redis, &files);
    measure::first_answer(peer.address, Instant::now());
    Some((peer, redis))
}

/// How a script ends that decides.
const RETURN: &[u8] = b"return reply";

/// What portcullis has its Redis do for a request.
#[derive(Debug)]
struct Decision {
    script: Vec<u8>,
    arguments: Vec<Vec<u8>>,
}

impl Decision {
    /// The first one about a client, and its script, among the commands that this Redis gets.
    fn among(overheard: impl Iterator<Item = Vec<Vec<u8>>>, redis: &Redis) -> Self {
        let mut scripts: Vec<(String, Vec<u8>)> = Vec::new();
        for mut command in overheard {
            let is = |at: usize, word: &str| command.get(at).is_some_and(|it| it.eq_ignore_ascii_case(word.as_bytes()));
            if is(0, "script") && is(1, "load") {
                let text = command.swap_remove(2);
                scripts.push((redis.ask(&[b"EVAL", b"return redis.sha1hex(ARGV[1])", b"0", &text]), text));
            } else if is(0, "evalsha") && is(2, "1") && !command[3].ends_with(b":probe") {
                let name = String::from_utf8_lossy(&command[1]).into_owned();
                // The first time Redis may not have had the script yet; others have to do with bans.
                let decides = |text: &[u8]| text.trim_ascii_end().ends_with(RETURN);
                if let Some((_, script)) = scripts.iter().find(|(sha, text)| *sha == name && decides(text)) {
                    return Self { script: script.clone(), arguments: command.split_off(4) };
                }
            }
        }
        unreachable!("a server that runs says more and more")
    }

    /// What nginx writes before and after a client's key to have its Redis do the same.
    fn for_lua(&self, redis: &Redis) -> [(&'static str, Vec<u8>); 2] {
        // All that differs: of what is returned, how long the client must wait, or -1. The rest would be read for nothing.
        let script = [self.script.trim_ascii_end(), b"[2]"].concat();
        let name = redis.ask(&[b"SCRIPT", b"LOAD", &script]);
        let key = [b'.'; 32];
        let named = [b"portcullis:", &key[..]].concat();
        let mut command: Vec<&[u8]> = vec![b"EVALSHA", name.as_bytes(), b"1", &named];
        command.extend(self.arguments.iter().map(Vec::as_slice));
        let bytes = redis::encode(&command);
        let at = memchr::memmem::find(&bytes, &key).expect("the key is in the command");
        [("before-key", bytes[..at].to_vec()), ("after-key", bytes[at + key.len()..].to_vec())]
    }
}
