//! CPU per request, memory per idle connection and time to the first request: portcullis beside nginx and `HAProxy`.
//!
//! `cargo bench --bench throughput` takes about a quarter of an hour, with `-- --quick` a minute; `-- --only portcullis`
//! leaves the others out, `-- --only redis` all but the table of limits that are decided in Redis, `-- --only outcome`
//! all but that of limits that count answers. Proxies run on core 0; the load generator and the application they stand
//! before on core 1. Each proxy takes its turn in every round, and the ratios are medians over the rounds, so that
//! whatever else the machine does falls on all of them. Needs two cores and `taskset`.

#![expect(clippy::print_stdout, reason = "the numbers are what this program is for")]
#![expect(clippy::disallowed_methods, reason = "it measures real time")]
#![expect(clippy::cast_precision_loss, reason = "counts below 2^52 are turned into ratios")]

mod application;
mod idle;
mod load;
mod measure;
mod outcome;
mod peer;
mod process;
mod redis;
mod shared;
mod table;

use std::env;
use std::time::Duration;

use self::measure::Plan;
use self::peer::Kind;

/// Half a minute: enough to see whether something is badly off.
const QUICK: Plan = Plan { rounds: 3, round: Duration::from_millis(1200), idle: &[1000], starts: 3 };

/// Enough for ratios to settle within two or three percent on a quiet machine.
const FULL: Plan = Plan { rounds: 9, round: Duration::from_secs(4), idle: &[1000, 10_000], starts: 9 };

fn main() {
    let arguments: &'static [String] = env::args().skip(1).collect::<Vec<_>>().leak();
    let words: Vec<&'static str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        // The roles that this program starts itself in.
        ["application"] => application::serve(),
        ["load", ..] => load::run(&load::Load::read(&words[1..])),
        ["idle", address, count] => idle::hold(address, count),
        _ => {
            let plan = if words.contains(&"--quick") { QUICK } else { FULL };
            let only = words.iter().position(|word| *word == "--only").and_then(|at| words.get(at + 1));
            let kinds: Vec<Kind> =
                Kind::IN_MEMORY.into_iter().filter(|kind| only.is_none_or(|only| kind.name() == *only)).collect();
            if !kinds.is_empty() {
                measure::run(&plan, &kinds);
            }
            if only.is_none_or(|only| *only == "redis") {
                shared::run(&plan);
            }
            if only.is_none_or(|only| *only == "outcome") {
                outcome::run(&plan);
            }
        }
    }
}
