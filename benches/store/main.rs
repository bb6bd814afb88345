//! Measures counts in Redis: `cargo bench --bench store` prints the memory of 100,000 logs of 60 requests each, how fast one
//! core of Redis decides, and how long a decision takes in a cluster that is some way off. It starts redis-servers of its own
//! from the PATH, and takes about a minute.

#![expect(clippy::print_stdout, reason = "the numbers are what this program is for")]
#![expect(clippy::disallowed_methods, reason = "it measures real time")]

mod across_slots;
mod cluster;
mod delay;
mod measure;
mod server;

use std::time::Duration;

use self::measure::Row;
use self::measure::Setting;
use self::server::Server;

/// The settings in which decisions are timed.
const SETTINGS: [Setting; 7] = [
    Setting { name: "1 rate, 20/minute", rates: "20/minute", before: 0, keys: 100_000 },
    Setting { name: "4 rates, 1/s 20/min 200/h 800/day", rates: FOUR, before: 0, keys: 100_000 },
    Setting { name: "1 rate, logs of 60", rates: "100/hour", before: 60, keys: 20_000 },
    Setting { name: "4 rates, logs of 60", rates: FOUR, before: 60, keys: 20_000 },
    Setting { name: "1 rate, logs of 128", rates: "10000/day", before: 127, keys: 20_000 },
    Setting { name: "1 rate, 10,000/day, half used", rates: "10000/day", before: 5000, keys: 100 },
    Setting {
        name: "4 rates, 10,000/day, half used",
        rates: "10/s; 200/minute; 2000/hour; 10000/day",
        before: 5000,
        keys: 100,
    },
];

const FOUR: &str = "1/second; 20/minute; 200/hour; 800/day";

fn main() {
    let server = Server::start();
    memory(&server);
    println!();
    println!("{:34} {:>12} {:>22}", "decisions, 64 callers", "a second", "Redis CPU us each");
    for setting in &SETTINGS {
        server.flush();
        let Row { rate, cpu } = measure::decisions(&server, setting, Duration::from_secs(2));
        println!("{:34} {rate:>12.0} {cpu:>22.2}", setting.name);
    }
    drop(server);
    println!();
    across_slots::measure();
}

/// Prints the memory of 100,000 logs.
fn memory(server: &Server) {
    for units in [1, 60] {
        server.flush();
        let before = server.info("used_memory");
        measure::fill(server, "60/minute; 800/day", 100_000, units);
        let used = (server.info("used_memory") - before) / 1e6;
        println!("100,000 logs of {units:2}: {used:.1} MB of used_memory, {:.0} bytes each", used * 10.0);
    }
}
