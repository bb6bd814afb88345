//! Cuts, slows and disturbs links for a while, heals them, and counts what the application got meanwhile.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use crate::load::{KEYS, POLICIES, Sample};
use crate::outages::Outage;
use crate::site::{Fleet, GATEWAYS, MOST, WINDOW_SECONDS};
use crate::support::{Arrival, Caller, StopOnDrop, Stopwatch, eventually, surely_decided_within};
use crate::{load, outages};

const WINDOW: Duration = Duration::from_secs(WINDOW_SECONDS);

/// What each gateway grants alone while it has no Redis: it holds a third.
const SHARE: usize = MOST / GATEWAYS;

/// Whoever asks for a key so often within a window fills it, also where answers are slow.
const ENOUGH: usize = 4 * MOST;

/// How long a fault lasts.
const FAULT: Duration = Duration::from_secs(15);

/// How long the parts of the gateways take to be fair at most, and one window more.
const PARTS_SETTLE: Duration = Duration::from_secs(10 + WINDOW_SECONDS);

/// A gateway notices an outage within this time: its longest `timeout` and a little more.
const NOTICING: Duration = Duration::from_secs(3);

/// One kind of broken network.
struct Fault {
    name: &'static str,
    inject: fn(&Fleet),
    /// These gateways surely have no Redis while it lasts.
    without_redis: &'static [usize],
    /// These gateways surely have it.
    with_redis: &'static [usize],
    /// The fault does not touch these gateways. Where one of them had no Redis, the machine itself stood still.
    untouched: &'static [usize],
}

const FAULTS: &[Fault] = &[
    Fault {
        name: "one gateway cut off from Redis",
        inject: |fleet| Fleet::cut(&[&fleet.gateways[0]], &fleet.redis.iter().collect::<Vec<_>>()),
        without_redis: &[0],
        with_redis: &[1],
        untouched: &[],
    },
    Fault {
        name: "one master cut off from all",
        inject: |fleet| Fleet::cut(&[&fleet.redis[0]], &fleet.all()),
        without_redis: &[],
        with_redis: &[],
        untouched: &[],
    },
    Fault {
        name: "a master and its replica apart",
        inject: |fleet| Fleet::cut(&[&fleet.redis[1]], &[&fleet.redis[4]]),
        without_redis: &[],
        with_redis: &[],
        untouched: &[],
    },
    Fault {
        name: "every packet delayed by 200 ms",
        inject: |fleet| Fleet::delay(&fleet.all(), "200"),
        without_redis: &[2],
        with_redis: &[],
        untouched: &[],
    },
    Fault {
        name: "5 % of the packets lost",
        inject: |fleet| Fleet::lose(&fleet.all(), "0.05"),
        without_redis: &[],
        with_redis: &[],
        untouched: &[],
    },
    Fault {
        name: "a gateway stopped for a second, five times",
        // The impatient one: Redis was there, and the gateway was not.
        inject: |fleet| (0..5).for_each(|_| Fleet::stop_for_a_second(&fleet.gateways[2])),
        without_redis: &[],
        with_redis: &[0, 1, 2],
        untouched: &[0, 1],
    },
];

/// When a fault began, when it was on every link, when its links were healed one after another, and when every gateway
/// decided by Redis again.
#[derive(Clone, Copy, Debug)]
struct Span {
    broken: Duration,
    complete: Duration,
    healing: Duration,
    healed: Duration,
    normal: Duration,
}

#[test]
fn limits_hold_whatever_the_network_does() {
    let fleet = Fleet::start();
    let addresses = fleet.addresses();
    let clock = fleet.application.clock();
    let over = AtomicBool::new(false);
    let (spans, samples) = thread::scope(|scope| {
        let ended = StopOnDrop(&over);
        decided_by_redis(&fleet);
        let over = &over;
        let clients: Vec<_> = addresses
            .iter()
            .enumerate()
            .flat_map(|(gateway, &address)| (0..2).map(move |_| (gateway, address)))
            .map(|(gateway, address)| scope.spawn(move || load::ask(gateway, address, clock, over)))
            .collect();
        // Until then each gateway holds its third.
        thread::sleep(PARTS_SETTLE);
        let spans: Vec<Span> = FAULTS.iter().map(|fault| measure_undisturbed(&fleet, fault, clock)).collect();
        drop(ended);
        let samples = clients.into_iter().flat_map(|client| client.join().expect("no panic here"));
        (spans, samples.collect::<Vec<Sample>>())
    });
    let outages = outages::logged_by(&fleet.gateways, clock);
    let seen = Seen { arrivals: fleet.application.arrivals(), samples, outages };
    print_head();
    for (fault, span) in FAULTS.iter().zip(&spans) {
        seen.judge(fault, *span);
    }
    seen.is_exact_between(&spans);
}

/// Measures a fault, and does so again where the machine stood still meanwhile.
fn measure_undisturbed(fleet: &Fleet, fault: &Fault, clock: Stopwatch) -> Span {
    for _ in 0..3 {
        let span = measure(fleet, fault, clock);
        let outages = outages::logged_by(&fleet.gateways, clock);
        let disturbed = outages::gateways_without_redis(&outages, span.broken, span.healing);
        if !fault.untouched.iter().any(|gateway| disturbed.contains(gateway)) {
            return span;
        }
    }
    measure(fleet, fault, clock)
}

/// Breaks the network for a while, heals it, and waits until the windows are those of a whole network again.
fn measure(fleet: &Fleet, fault: &Fault, clock: Stopwatch) -> Span {
    let broken = clock.elapsed();
    (fault.inject)(fleet);
    let complete = clock.elapsed();
    thread::sleep(FAULT);
    let healing = clock.elapsed();
    fleet.heal();
    let healed = clock.elapsed();
    decided_by_redis(fleet);
    let normal = clock.elapsed();
    thread::sleep(3 * WINDOW);
    Span { broken, complete, healing, healed, normal }
}

/// Waits until no gateway answers 503 because of an outage, for keys on every master.
#[track_caller]
fn decided_by_redis(fleet: &Fleet) {
    for (number, door) in fleet.addresses().into_iter().enumerate() {
        eventually("Redis decides", || {
            let mut caller = Caller::default();
            (0..KEYS).all(|key| {
                let status =
                    caller.call(door, &format!("/deny/{number}"), &format!("key-{key}"), fleet.application.clock());
                matches!(status, Some(200 | 429))
            })
        });
    }
}

/// What clients and the application saw of it all.
#[derive(Debug)]
struct Seen {
    arrivals: Vec<Arrival>,
    samples: Vec<Sample>,
    outages: Vec<Outage>,
}

impl Seen {
    /// The most that passed for one key within a window, of what was sent within a span.
    fn fullest(&self, policy: &str, gateways: &[usize], from: Duration, until: Duration) -> usize {
        let targets: Vec<String> = gateways.iter().map(|gateway| format!("/{policy}/{gateway}")).collect();
        let of_key = |key: usize| {
            let key = format!("key-{key}");
            let chosen = self.arrivals.iter().filter(|arrival| {
                arrival.key == key && targets.contains(&arrival.target) && arrival.sent >= from && arrival.sent < until
            });
            surely_decided_within(WINDOW, &chosen.collect::<Vec<_>>())
        };
        (0..KEYS).map(of_key).max().unwrap_or(0)
    }

    /// While the network is whole, no window holds more than the limit, and some are full. A busy machine may ask for too little
    /// in a span to fill any, and not in all of them.
    ///
    /// A machine that stalls may exhaust a gateway's patience with Redis in a whole network too. The gateway logs this, and
    /// grants its share under `local`: a window may hold that as well. Not every span between the faults is such a one.
    #[track_caller]
    fn is_exact_between(&self, spans: &[Span]) {
        let begins = std::iter::once(Duration::ZERO).chain(spans.iter().map(|span| span.normal + WINDOW));
        let ends = spans.iter().map(|span| span.broken).chain([Duration::MAX]);
        let (mut whole, mut fullest_of_all) = (0, [0; POLICIES.len()]);
        for (begin, end) in begins.zip(ends) {
            let alone = outages::gateways_without_redis(&self.outages, begin, end).len();
            whole += usize::from(alone == 0);
            for (policy, share) in [0, SHARE].into_iter().enumerate() {
                let fullest = self.fullest(POLICIES[policy], &[0, 1, 2], begin, end);
                fullest_of_all[policy] = fullest.max(fullest_of_all[policy]);
                let least = if self.asked_within_a_window(policy, begin, end) >= ENOUGH { MOST } else { 0 };
                let allowed = least..=MOST + alone * share;
                assert!(
                    allowed.contains(&fullest),
                    "/{} between {begin:?} and {end:?}: {fullest}, not {allowed:?}: {:?}",
                    POLICIES[policy],
                    self.outages
                );
            }
        }
        assert!(fullest_of_all.iter().all(|&fullest| fullest >= MOST), "no window is full: {fullest_of_all:?}");
        assert!(whole > 0, "some gateway had no Redis in every span: {:?}", self.outages);
    }

    /// How often a key was asked for within a window of a span, on average.
    fn asked_within_a_window(&self, policy: usize, from: Duration, until: Duration) -> usize {
        let until = until.min(self.samples.iter().map(|sample| sample.answered).max().unwrap_or_default());
        let within = |sample: &&Sample| sample.policy == policy && sample.sent >= from && sample.answered <= until;
        let windows = until.saturating_sub(from).as_millis().div_ceil(WINDOW.as_millis()).max(1);
        self.samples.iter().filter(within).count() / KEYS / usize::try_from(windows).expect("a few")
    }

    /// Fails unless a fault was borne as promised; prints it as a row of the table of docs/src/redis.md.
    #[track_caller]
    #[expect(clippy::print_stdout, reason = "the table of docs/src/redis.md is made of these lines")]
    fn judge(&self, fault: &Fault, span: Span) {
        let from = span.broken.saturating_sub(WINDOW);
        let until = span.normal + WINDOW;
        let all = [0, 1, 2];
        let [deny, local] = POLICIES.map(|policy| self.fullest(policy, &all, from, until));
        // Containers get a fault one after another: until the last has it, Redis may answer in time.
        let surely_away = span.complete + NOTICING;
        let alone: Vec<usize> = fault
            .without_redis
            .iter()
            .map(|&gateway| self.fullest("local", &[gateway], surely_away, span.healing))
            .collect();

        let during = |policy: usize| {
            self.samples.iter().filter(move |sample| {
                sample.policy == policy && sample.sent >= span.broken && sample.answered < span.healing
            })
        };
        let unavailable = during(0).filter(|sample| sample.status == Some(503)).count();
        let slowest = during(1).map(|sample| sample.answered.saturating_sub(sample.sent)).max().unwrap_or_default();
        println!(
            "| {} | {deny} of {MOST} | {local} of {MOST} | {} | {} of {} | {} ms | {} ms |",
            fault.name,
            alone.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
            unavailable,
            during(0).count(),
            slowest.as_millis(),
            span.normal.saturating_sub(span.healed).as_millis(),
        );

        // Only Redis admits here, and a replica knows of each charge before the request passes.
        assert!(deny <= MOST, "{}: {deny} of {MOST} where only Redis admits", fault.name);
        assert!(local <= MOST + GATEWAYS * SHARE, "{}: {local} of {MOST} and all shares", fault.name);
        let logged = outages::gateways_without_redis(&self.outages, surely_away, span.healing);
        assert!(fault.without_redis.iter().all(|gateway| logged.contains(gateway)), "{}: {logged:?}", fault.name);
        let logged = outages::gateways_without_redis(&self.outages, span.broken, span.healing);
        assert!(!fault.with_redis.iter().any(|gateway| logged.contains(gateway)), "{}: {logged:?}", fault.name);
        for passed in alone {
            assert_eq!(passed, SHARE, "{}: what a gateway without Redis grants", fault.name);
        }
        for policy in 0..POLICIES.len() {
            let others = during(policy).filter(|sample| !matches!(sample.status, Some(200 | 429 | 503)));
            assert_eq!(others.count(), 0, "{}: answers that are neither a pass nor a denial", fault.name);
        }
        let denied_for_redis = during(1).filter(|sample| sample.status == Some(503)).count();
        assert_eq!(denied_for_redis, 0, "{}: 503 where a gateway is to count by itself", fault.name);
    }
}

#[expect(clippy::print_stdout, reason = "the table of docs/src/redis.md is made of these lines")]
fn print_head() {
    println!(
        "| for 15 s | most in a window, `deny` | most in a window, `local` | of it a gateway without Redis | 503 under `deny` | slowest answer under `local` | decides again after |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
}
