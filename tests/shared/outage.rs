//! Measures what clients get during an outage, under every policy at once.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::site::{RAW, Site, TIMEOUT, said_of_redis};
use crate::support::{Caller, Gateway, StopOnDrop, Stopwatch, eventually};

/// One route for each policy, with a limit that counts each client for itself.
pub(super) const ROUTES: &str = "routes:
  - {match: /local, limits: [{name: local-of-the-test, key: header.x-key, rate: 10/hour}]}
  - {match: /allow, limits: [{name: allow-of-the-test, key: header.x-key, rate: 10/hour, on_failure: allow}]}
  - {match: /deny, limits: [{name: deny-of-the-test, key: header.x-key, rate: 10/hour, on_failure: deny}]}";

/// `nodes: 2`: under `local` each gateway grants five of the ten.
pub(super) const STORE: &str = "  on_failure: local\n  nodes: 2";

const POLICIES: [&str; 3] = ["/local", "/allow", "/deny"];

/// How long the outage lasts.
const AWAY: Duration = Duration::from_millis(1200);

/// A busy machine may add so much to a latency. Where a gateway without Redis, measured at the same time, shows more, more
/// is allowed.
const SCHEDULING: Duration = Duration::from_millis(100);

/// One request. Its client sends no other.
#[derive(Clone, Debug)]
struct Sample {
    policy: &'static str,
    key: String,
    /// By the clock of the application.
    sent: Duration,
    took: Duration,
    status: Option<u16>,
}

/// The measurements of one outage.
#[derive(Debug)]
pub(super) struct Outage {
    samples: Vec<Sample>,
    broken: Duration,
    /// Until this time the outage lasted for certain. Then Redis was repaired.
    looked: Duration,
    mended: Duration,
    /// From Redis' return to the first answer under `deny` that only Redis can give.
    normal_after: Duration,
    /// The latencies of a gateway without Redis at the same time: they show how busy the machine was.
    alone: Vec<Duration>,
    /// How many log lines there were about Redis before.
    told: usize,
    usual: Duration,
}

/// Breaks Redis while clients send requests, calls `meanwhile`, and repairs Redis.
///
/// `mend` returns when Redis would answer again.
#[track_caller]
pub(super) fn measure(
    site: &mut Site,
    break_it: impl FnOnce(&mut Site),
    meanwhile: impl FnOnce(&mut Site),
    mend: impl FnOnce(&mut Site),
) -> Outage {
    let address = site.gateways[0].address();
    let clock = site.application.clock();
    let other = Gateway::start(format!(
        "upstream: {}\nlog: {{level: info, format: json, requests: false}}",
        site.application.url()
    ));
    let usual = median(&before(address, clock));
    let told = said_of_redis(&site.gateways[0]).len();
    let over = AtomicBool::new(false);
    let mut span = [Duration::ZERO; 4];
    let mut alone = Vec::new();
    let mut samples = thread::scope(|scope| {
        let ended = StopOnDrop(&over);
        let ask = |policy| {
            let over = &over;
            scope.spawn(move || {
                let mut caller = Caller::default();
                let mut samples = Vec::new();
                while !over.load(Ordering::SeqCst) {
                    let sample = sample(&mut caller, address, policy, samples.len(), clock);
                    samples.push(sample);
                    thread::sleep(Duration::from_millis(2));
                }
                samples
            })
        };
        let running: Vec<_> = POLICIES.into_iter().map(ask).collect();
        let beside = scope.spawn(|| {
            let mut caller = Caller::default();
            let mut took = Vec::new();
            while !over.load(Ordering::SeqCst) {
                took.push(sample(&mut caller, other.address(), "/alone", took.len(), clock).took);
                thread::sleep(Duration::from_millis(2));
            }
            took
        });
        thread::sleep(Duration::from_millis(100));
        let broken = clock.elapsed();
        break_it(site);
        thread::sleep(AWAY);
        meanwhile(site);
        let looked = clock.elapsed();
        mend(site);
        let mended = clock.elapsed();
        let mut probe = Caller::default();
        let mut number = 0;
        eventually("requests are decided by Redis again", || {
            number += 1;
            probe.call(address, "/deny", &format!("{RAW}-mended-{number}"), clock) == Some(200)
        });
        span = [broken, looked, mended, clock.elapsed().saturating_sub(mended)];
        thread::sleep(Duration::from_millis(300));
        drop(ended);
        alone = beside.join().expect("no panic here");
        running.into_iter().flat_map(|thread| thread.join().expect("no panic here")).collect::<Vec<_>>()
    });
    samples.sort_by_key(|sample| sample.sent);
    let [broken, looked, mended, normal_after] = span;
    Outage { samples, broken, looked, mended, normal_after, alone, told, usual }
}

impl Outage {
    /// Fails if the outage broke a promise. Prints it as a row of the table in docs/src/redis.md.
    #[track_caller]
    #[expect(clippy::print_stdout, reason = "the table of docs/src/redis.md is made of these lines")]
    pub(super) fn is_survived(&self, name: &str, site: &Site) {
        let log = || said_of_redis(&site.gateways[0]).split_off(self.told);
        // The return is logged once it is stable.
        eventually("its return is logged", || log().len() >= 2);
        let log = log();
        let statuses: Vec<String> = POLICIES.iter().map(|policy| self.statuses(policy)).collect();
        let (first, open) = self.away();
        // A machine that is busier than before delays the gateway without Redis as well.
        let usual = self.usual.max(median(&self.alone));
        let added = |span: Duration| span.saturating_sub(usual).as_secs_f64() * 1000.0;
        println!(
            "| {name} | {} | {:.0} ms | {:.1} ms, {:.0} ms ({:.0} ms) | {} ms | {} |",
            statuses.join(" / "),
            added(max(&first)),
            added(median(&open)),
            added(max(&open)),
            added(max(&self.alone)),
            self.normal_after.as_millis(),
            cause(&log[0]),
        );
        assert_eq!(statuses, ["200", "200", "503"], "{name}");
        self.nobody_waits(name);
        assert!(added(median(&open)) < 5.0, "{name}: {:?}, otherwise {usual:?}", median(&open));
        assert!(self.normal_after < Duration::from_secs(1), "{name}: normal after {:?}", self.normal_after);
        assert_eq!(log.len(), 2, "{name}: one line when it goes, one when it is back: {log:#?}");
        self.nothing_denied_reached(site);
    }

    /// Fails if a client noticed anything.
    #[track_caller]
    pub(super) fn is_none(&self, name: &str, site: &Site) {
        assert_eq!(POLICIES.map(|policy| self.statuses(policy)), ["200", "200", "200"], "{name}");
        self.nobody_waits(name);
        assert_eq!(said_of_redis(&site.gateways[0]).len(), self.told, "{name}");
    }

    /// The statuses during the outage, each once. Under `deny` the last answers of Redis are left out.
    fn statuses(&self, policy: &str) -> String {
        let from = self.noticed();
        let away = self.samples.iter().filter(|sample| sample.sent >= from && sample.sent + sample.took < self.looked);
        let mut seen: Vec<u16> =
            away.filter(|sample| sample.policy == policy).map(|sample| sample.status.unwrap_or(0)).collect();
        seen.sort_unstable();
        seen.dedup();
        seen.iter().map(u16::to_string).collect::<Vec<_>>().join(", ")
    }

    /// When the first request was sent that Redis did not decide.
    fn noticed(&self) -> Duration {
        let denied = self.samples.iter().find(|sample| sample.status == Some(503));
        denied.map_or(self.broken, |sample| sample.sent)
    }

    /// How long requests took that were sent just before the circuit opened, and those sent later, until Redis was back.
    fn away(&self) -> (Vec<Duration>, Vec<Duration>) {
        let opened = self.noticed()
            + self
                .samples
                .iter()
                .find(|sample| sample.status == Some(503))
                .map_or(Duration::ZERO, |sample| sample.took);
        let away =
            self.samples.iter().filter(|sample| sample.sent + sample.took >= self.broken && sample.sent < self.mended);
        let (first, open): (Vec<&Sample>, Vec<&Sample>) = away.partition(|sample| sample.sent < opened);
        let took = |samples: Vec<&Sample>| samples.iter().map(|sample| sample.took).collect();
        (took(first), took(open))
    }

    /// Fails when a request waited for longer than the timeout, or when any waited but those that were under way at first.
    #[track_caller]
    fn nobody_waits(&self, name: &str) {
        let (first, open) = self.away();
        let most = TIMEOUT + SCHEDULING.max(max(&self.alone) * 2);
        assert!(max(&first) <= most, "{name}: a request took {:?}, without Redis {:?}", max(&first), max(&self.alone));
        // Later on a busy machine may hold up a request of each client now and then, and shows it by holding up those
        // that have nothing to do with Redis. If some were sent to Redis to try it, it would be more of them than that.
        let stalls = self.alone.iter().filter(|took| **took >= TIMEOUT / 2).count();
        let waited = open.iter().filter(|took| **took >= TIMEOUT).count();
        assert!(waited <= POLICIES.len() * (1 + stalls), "{name}: {waited} requests waited, {stalls} without Redis");
    }

    #[track_caller]
    fn nothing_denied_reached(&self, site: &Site) {
        let arrived = site.application.arrivals();
        let denied = self.samples.iter().filter(|sample| sample.status == Some(503));
        for sample in denied {
            assert_eq!(sample.policy, "/deny");
            assert!(!arrived.iter().any(|arrival| arrival.key == sample.key), "{sample:?} reached the application");
        }
    }
}

/// How long requests take while all is well.
fn before(address: SocketAddr, clock: Stopwatch) -> Vec<Duration> {
    let mut caller = Caller::default();
    let ask = |number: usize| {
        thread::sleep(Duration::from_millis(1));
        let sample = sample(&mut caller, address, POLICIES[number % 3], 100_000 + number, clock);
        assert_eq!(sample.status, Some(200), "{sample:?}");
        sample.took
    };
    (0..150).map(ask).collect()
}

fn sample(caller: &mut Caller, address: SocketAddr, policy: &'static str, number: usize, clock: Stopwatch) -> Sample {
    let key = format!("{RAW}{policy}-{number}");
    let sent = clock.elapsed();
    let status = caller.call(address, policy, &key, clock);
    Sample { policy, key, sent, took: clock.elapsed().saturating_sub(sent), status }
}

fn median(spans: &[Duration]) -> Duration {
    let mut sorted = spans.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

fn max(spans: &[Duration]) -> Duration {
    spans.iter().max().copied().unwrap_or_default()
}

/// `timeout` of `redis 127.0.0.1:6379 is down (timeout): each limit ...`.
fn cause(line: &str) -> &str {
    line.split_once("down (").and_then(|(_, rest)| rest.split_once(')')).map_or(line, |(cause, _)| cause)
}
