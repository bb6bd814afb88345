//! CPU per request, memory per idle connection and time to the first request: portcullis beside nginx and `HAProxy`.
//!
//! `cargo bench --bench throughput` takes about twenty minutes, with `-- --quick` two. `-- --only portcullis` leaves the
//! others out, `-- --only redis` all but the table of limits that are decided in Redis, `-- --only outcome` all but that
//! of limits that count answers, `-- --only cores` all but that of two cores against one. `-- --job TLS` measures only
//! the jobs with that word in their names. Proxies run on core 0; the load generator and the application they stand
//! before on core 1. Each proxy takes its turn in every round, and the ratios are medians over the rounds, so that
//! whatever else the machine does falls on all of them. The tables go to standard output, the rounds to standard error.
//! Needs two cores and `taskset`.

#![expect(clippy::print_stdout, reason = "the numbers are what this program is for")]
#![expect(clippy::print_stderr, reason = "and how it gets them is worth seeing")]
#![expect(clippy::disallowed_methods, reason = "it measures real time")]
#![expect(clippy::cast_precision_loss, reason = "counts below 2^52 are turned into ratios")]

mod application;
mod cores;
mod idle;
mod job;
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

use self::load::Load;
use self::measure::Plan;
use self::peer::Kind;

/// Enough to see whether something is badly off.
const QUICK: Plan = Plan { rounds: 3, round: Duration::from_millis(700), idle: &[1000], starts: 3 };

/// Enough for ratios to settle within two or three percent on a quiet machine.
const FULL: Plan = Plan { rounds: 9, round: Duration::from_secs(3), idle: &[1000, 10_000], starts: 9 };

fn main() {
    let arguments: &'static [String] = env::args().skip(1).collect::<Vec<_>>().leak();
    let words: Vec<&'static str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        // The roles that this program starts itself in.
        ["application", threads] => application::serve(threads.parse().expect("a number")),
        ["load", load] => load::run(Load::read(load)),
        ["idle", load] => idle::hold(Load::read(load)),
        _ => measure_all(&words),
    }
}

fn measure_all(words: &[&str]) {
    let plan = if words.contains(&"--quick") { QUICK } else { FULL };
    let after = |option| words.iter().skip_while(move |word| **word != option).nth(1).copied();
    let (only, job) = (after("--only"), after("--job"));
    let kinds: Vec<Kind> =
        Kind::IN_MEMORY.into_iter().filter(|kind| only.is_none_or(|only| kind.name() == only)).collect();
    if !kinds.is_empty() {
        measure::run(&plan, &kinds, job);
    }
    let is_wanted = |table| only.map_or(job.is_none(), |only| only == table);
    if is_wanted("cores") {
        cores::run(&plan);
    }
    if is_wanted("redis") {
        shared::run(&plan);
    }
    if is_wanted("outcome") {
        outcome::run(&plan);
    }
}
