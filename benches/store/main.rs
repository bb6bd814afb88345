//! Measures counts in Redis: `cargo bench --bench store` prints the memory of 100,000 keys of each kind, how fast one core of
//! Redis decides, and how long a decision takes in a cluster that is some way off. It starts redis-servers of its own
//! from the PATH, and takes about a minute.

#![expect(clippy::print_stdout, reason = "the numbers are what this program is for")]
#![expect(clippy::disallowed_methods, reason = "it measures real time")]

mod across_slots;
mod cluster;
mod delay;
mod measure;
mod server;

use std::num::NonZeroU32;
use std::time::Duration;

use portcullis::rules::limit::{Algorithm, Rates, Rule};

use self::measure::{Row, Setting};
use self::server::Server;

/// The settings in which decisions are timed.
const SETTINGS: [Setting; 16] = [
    Setting { name: "1 rate, 20/minute", ..ONE },
    Setting { name: "the same, 1 under way at a time", callers: 1, ..ONE },
    Setting { name: "the same, 4 at a time", callers: 4, ..ONE },
    Setting { name: "the same, 16 at a time", callers: 16, ..ONE },
    Setting { name: "the same, 256 at a time", callers: 256, ..ONE },
    Setting { name: "2 limits of 20/minute", limits: 2, ..ONE },
    Setting { name: "3 limits of 20/minute", limits: 3, ..ONE },
    Setting { name: "4 limits of 20/minute", limits: 4, ..ONE },
    Setting { name: "6 limits of 20/minute", limits: 6, ..ONE },
    Setting { name: "8 limits of 20/minute", limits: 8, ..ONE },
    Setting { name: "4 rates, 1/s 20/min 200/h 800/day", rates: FOUR, ..ONE },
    Setting { name: "1 rate, logs of 60", rates: "100/hour", before: 60, keys: 20_000, ..ONE },
    Setting { name: "4 rates, logs of 60", rates: FOUR, before: 60, keys: 20_000, ..ONE },
    Setting { name: "1 rate, logs of 128", rates: "10000/day", before: 127, keys: 20_000, ..ONE },
    Setting { name: "1 rate, 10,000/day, half used", rates: "10000/day", before: 5000, keys: 100, ..ONE },
    Setting {
        name: "4 rates, 10,000/day, half used",
        rates: "10/s; 200/minute; 2000/hour; 10000/day",
        before: 5000,
        keys: 100,
        ..ONE
    },
];

const ONE: Setting =
    Setting { name: "", rates: "20/minute", before: 0, keys: 100_000, limits: 1, callers: measure::CALLERS };

const FOUR: &str = "1/second; 20/minute; 200/hour; 800/day";

fn main() {
    let server = Server::start();
    memory(&server);
    println!();
    println!("{:34} {:>12} {:>22}", "decisions, 64 at a time", "a second", "Redis CPU us each");
    for setting in &SETTINGS {
        server.flush();
        let Row { rate, cpu } = measure::decisions(&server, setting, Duration::from_secs(2));
        println!("{:34} {rate:>12.0} {cpu:>22.2}", setting.name);
    }
    drop(server);
    println!();
    across_slots::measure();
}

/// Prints the memory of 100,000 keys of each kind.
fn memory(server: &Server) {
    let used = |what: &str, fill: &dyn Fn()| {
        server.flush();
        let before = server.info("used_memory");
        fill();
        let used = (server.info("used_memory") - before) / 1e6;
        println!("100,000 of {what:36} {used:5.1} MB of used_memory, {:.0} bytes each", used * 10.0);
    };
    let one_minute: Rates = "60/minute".parse().expect("a rate");
    let of = |algorithm| Rule::Rates { algorithm, rates: one_minute.clone(), cost: NonZeroU32::MIN };
    let slots = Rule::Concurrent(NonZeroU32::new(20).expect("above zero"));
    let rules = [
        ("sliding counters", of(Algorithm::SlidingWindowCounter)),
        ("bucketed windows", of(Algorithm::BucketedWindow { buckets: None })),
        ("fixed windows", of(Algorithm::FixedWindow)),
        ("token buckets", of(Algorithm::TokenBucket { burst: None })),
        ("keys with a slot in flight", slots),
    ];
    for units in [1, 60] {
        let what = format!("logs of {units}, 60/minute; 800/day");
        used(&what, &|| measure::fill(server, "60/minute; 800/day", 100_000, units));
    }
    for (what, rule) in rules {
        used(what, &|| measure::charge_all(server, std::slice::from_ref(&rule), 100_000, 1));
    }
    let distinct = [Rule::Distinct(one_minute)];
    used("keys with 10 different values", &|| measure::charge_all(server, &distinct, 100_000, 10));
}
