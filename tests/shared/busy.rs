//! A gateway that is busy does not take its Redis for dead: every decision is one of Redis, or none.

use std::fmt::Write;
use std::io::{Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{io, thread};

use crate::site::{TIMEOUT, alone, config, said_of_redis, store_up};
use crate::support::{
    Caller, CertificateAuthority, Certified, Gateway, Ledger, RedisServer, Stopwatch, eventually, repeat_until,
};

/// What a key may have. During an outage each gateway would grant as much by itself.
const MOST: usize = 20;

/// How long a byte takes on a slow way: an answer takes longer than a request waits, and no pause is as long as the timeout.
const SLOW: Duration = Duration::from_millis(40);

/// Gateways with the default timeout, on whose core Redis has too little left to answer in time if they are optimised, in front
/// of an application that hardly anything reaches: Redis decides each attempt.
struct Site {
    gateways: Vec<Gateway>,
    application: Ledger,
    redis: RedisServer,
    /// The targets that h2load asks for, each under a key of its own.
    targets: tempfile::TempDir,
}

impl Site {
    fn start(gateways: usize) -> Self {
        let (application, redis) = (Ledger::start(), RedisServer::start());
        let rest = "listen:
  - 127.0.0.1:0
  - {address: 127.0.0.1:0, tls: {certificates: [{cert: site.pem, key: site.key}]}}
routes:
  - match: /fill/*
    limits:
      - {name: of-the-name, key: path, rate: 1/hour}
      - {name: of-all, key: [], rate: 10/hour, count: attempts}
  - match: /victim
    limits: [{name: of-the-victim, key: header.x-key, rate: 20/hour}]";
        let config = config(&application.url(), &format!("url: \"{}\"", redis.url()), "", rest);
        let Certified { cert, key } = CertificateAuthority::generate().server(&["a.test"]);
        let files = [("site.pem", cert.as_str()), ("site.key", key.as_str())];
        let gateways: Vec<_> = (0..gateways).map(|_| Gateway::unoptimised(&config, &files)).collect();
        for gateway in &gateways {
            eventually("the gateway has found Redis", || store_up(gateway));
        }
        Self { gateways, application, redis, targets: tempfile::tempdir().expect("a folder") }
    }

    /// Asks a listener of each gateway for ever new keys, until it is dropped.
    fn load(&self, secure: bool, options: &[&str]) -> Vec<Load> {
        let load = |(number, gateway): (usize, &Gateway)| {
            let address = gateway.addresses()[usize::from(secure)];
            let scheme = if secure { "https" } else { "http" };
            let mut targets = String::new();
            for name in 0..50_000 {
                writeln!(targets, "{scheme}://{address}/fill/{secure}-{number}-{name}").expect("memory");
            }
            let file = self.targets.path().join(format!("{secure}-{number}-{}", options.len()));
            std::fs::write(&file, targets).expect("a file in the folder");
            let mut command = Command::new("h2load");
            command.args(options).arg("-i").arg(file).stdout(Stdio::null()).stderr(Stdio::null());
            Load(command.spawn().expect("tests/run installs it"))
        };
        self.gateways.iter().enumerate().map(load).collect()
    }

    /// Asks for one key at all gateways, more often than it may pass. Returns how many were passed, denied, and neither.
    fn ask_for_victim(&self, key: &str, for_at_least: Duration) -> [usize; 3] {
        let (begun, mut seen) = (Stopwatch::start(), [0; 3]);
        let mut callers: Vec<_> = self.gateways.iter().map(|gateway| (gateway.address(), Caller::default())).collect();
        while begun.elapsed() < for_at_least || seen.iter().sum::<usize>() < 2 * MOST {
            for (address, caller) in &mut callers {
                let status = caller.call(*address, "/victim", key, self.application.clock());
                seen[match status {
                    Some(200) => 0,
                    Some(429) => 1,
                    _ => 2,
                }] += 1;
            }
        }
        seen
    }

    /// No gateway has taken Redis for down, and whom one refused because it is busy was counted.
    fn is_never_down(&self, refused: usize) {
        for gateway in &self.gateways {
            assert_eq!(said_of_redis(gateway), [""; 0]);
            assert_eq!(metric(gateway, "portcullis_store_down_total"), 0);
        }
        let overload: usize = self.gateways.iter().map(|gateway| metric(gateway, "portcullis_overload_total")).sum();
        assert!(overload >= refused, "{refused} were refused, and {overload} counted");
    }
}

/// A load generator. When this is dropped, it is killed.
struct Load(Child);

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn metric(gateway: &Gateway, name: &str) -> usize {
    let text = gateway.admin_request("GET", "/metrics").send().text();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name} is not in {text}"));
    line.rsplit(' ').next().and_then(|value| value.parse().ok()).expect("a number")
}

/// Lets a process run on one core only, together with all others that are so bound.
fn bind_to_one_core(pid: u32) {
    let mut command = Command::new("taskset");
    let bound = command.args(["-a", "-p", "1", &pid.to_string()]).stdout(Stdio::null()).status();
    assert!(bound.expect("part of every system").success(), "it runs");
}

#[test]
fn a_gateway_that_a_debugger_stopped_takes_the_answers_that_came_meanwhile() {
    let _alone = alone();
    let site = Site::start(2);
    let _loads = site.load(false, &["--h1", "-c", "50", "-t", "1", "-D", "60"]);
    let seen = thread::scope(|scope| {
        let asking = scope.spawn(|| site.ask_for_victim("stopped", Duration::from_secs(5)));
        for _ in 0..4 {
            for gateway in &site.gateways {
                gateway.pause_for(Duration::from_millis(600));
            }
        }
        asking.join().expect("no panic")
    });
    assert_eq!((seen[0], seen[2]), (MOST, 0), "{seen:?}");
    site.is_never_down(0);
}

/// Handshakes, streams, bodies and keys without end, reloads, and one core for everything.
#[test]
fn however_busy_a_gateway_is_its_redis_is_not_down_and_no_limit_is_passed() {
    let _alone = alone();
    let site = Site::start(2);
    let processes = site.gateways.iter().map(Gateway::pid).chain([site.redis.pid()]);
    processes.for_each(bind_to_one_core);
    let mut loads = site.load(false, &["--h1", "-c", "400", "-t", "1", "-D", "60"]);
    loads.extend(site.load(true, &["-c", "20", "-m", "50", "-t", "1", "-D", "60"]));
    let body = site.targets.path().join("body");
    std::fs::write(&body, vec![b'a'; 1 << 20]).expect("a file in the folder");
    loads.extend(
        site.load(true, &["-c", "4", "-m", "4", "-t", "1", "-D", "60", "-d", body.to_str().expect("a plain path")]),
    );
    for load in &loads {
        bind_to_one_core(load.0.id());
    }
    let config = std::fs::read_to_string(site.gateways[0].path("portcullis.yaml")).expect("it is there");
    let seen = thread::scope(|scope| {
        let asking = scope.spawn(|| site.ask_for_victim("busy", Duration::from_secs(8)));
        let (mut number, mut handshakes) = (0, None);
        repeat_until(
            || asking.is_finished(),
            Duration::from_millis(700),
            || {
                handshakes = Some(site.load(true, &["-c", "60", "-t", "1", "-n", "60"]));
                site.gateways[number % 2].write_config(format!("{config}\n# {number}\n"));
                number += 1;
            },
        );
        drop(handshakes);
        asking.join().expect("no panic")
    });
    drop(loads);
    let [passed, _, refused] = seen;
    assert!(passed == MOST || passed < MOST && refused > 0, "{seen:?}");
    assert_eq!(site.application.count("/victim"), passed);
    site.is_never_down(refused);
}

/// A way to Redis that lets answers through byte by byte from the moment it is told to.
struct Trickle {
    address: SocketAddr,
    is_slow: Arc<AtomicBool>,
}

impl Trickle {
    fn to(redis: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let (address, is_slow) = (listener.local_addr().expect("a bound socket"), Arc::new(AtomicBool::new(false)));
        let slow = Arc::clone(&is_slow);
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let far = TcpStream::connect(redis).expect("Redis is there");
                let (mut asked, mut server) = (near.try_clone().expect("a socket"), far.try_clone().expect("a socket"));
                thread::spawn(move || io::copy(&mut asked, &mut server));
                let slow = Arc::clone(&slow);
                thread::spawn(move || trickle(far, near, &slow));
            }
        });
        Self { address, is_slow }
    }
}

/// Ends when one of them is closed.
fn trickle(mut from: TcpStream, mut to: TcpStream, is_slow: &AtomicBool) {
    let mut bytes = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        for piece in bytes[..length].chunks(if is_slow.load(Ordering::Relaxed) { 1 } else { length }) {
            if is_slow.load(Ordering::Relaxed) {
                thread::sleep(SLOW);
            }
            if to.write_all(piece).is_err() {
                return;
            }
        }
    }
}

#[test]
fn what_cannot_be_asked_in_time_is_refused_and_not_guessed() {
    let _alone = alone();
    let (application, redis) = (Ledger::start(), RedisServer::start());
    let way = Trickle::to(redis.address());
    let limits = "limits: [{name: of-the-test, key: header.x-key, rate: 20/hour, on_failure: allow}]";
    let redis = format!("url: \"redis://{}\"", way.address);
    let gateway = Gateway::start(config(&application.url(), &redis, "", limits));
    eventually("the gateway has found Redis", || store_up(&gateway));
    let ask = || gateway.get("/").header("x-key", "a").send();
    assert_eq!(ask().status, 200);
    way.is_slow.store(true, Ordering::Relaxed);
    let begun = Stopwatch::start();
    let refused = ask();
    assert!(begun.elapsed() >= 10 * TIMEOUT, "{:?}", begun.elapsed());
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    assert_eq!(application.count("/"), 1);
    assert_eq!(metric(&gateway, "portcullis_overload_total"), 1);
    assert_eq!(metric(&gateway, "portcullis_store_down_total"), 0);
    way.is_slow.store(false, Ordering::Relaxed);
    eventually("it decides again", || ask().status == 200);
}
