//! CPU per request, memory per idle connection and time to the first request: portcullis beside nginx and `HAProxy`.
//!
//! `cargo bench --bench throughput` takes about half an hour, with `-- --quick` three minutes.
//!
//! | option | what it does |
//! | --- | --- |
//! | `--only NAME` | measures one column (`nginx`, `haproxy`, `portcullis`) or one table (`redis`, `cores`, `outcome`, `fronts`, `pages`) |
//! | `--job WORD` | measures only the rows with that word |
//! | `--binary NAME=PATH` | adds another build of portcullis, under that name; may be repeated |
//! | `--train PATH` | only runs every row for a moment on that build, which counts what it runs: `scripts/build-release` |
//! | `--quick` | shorter and fewer rounds |
//! | `--instructions` | counts user instructions per request with valgrind instead of measuring time |
//! | `--hold` | counts them and fails where a row takes more than `instructions.toml` allows |
//!
//! Proxies run on core 0; the load generator and the application they stand before on core 1. Clients send a browser's
//! header fields, and the application answers with ten. Each proxy takes its turn in every round, and the ratios are
//! medians over the rounds, so that whatever else the machine does falls on all of them. The tables go to standard output,
//! the rounds to standard error. Needs two cores and `taskset`.

#![expect(clippy::print_stdout, reason = "the numbers are what this program is for")]
#![expect(clippy::print_stderr, reason = "and how it gets them is worth seeing")]
#![expect(clippy::disallowed_methods, reason = "it measures real time")]
#![expect(clippy::cast_precision_loss, reason = "counts below 2^52 are turned into ratios")]

mod against_first;
mod application;
mod cores;
mod fronts;
mod idle;
mod instructions;
mod job;
mod load;
mod measure;
mod options;
mod outcome;
mod pages;
mod peer;
mod process;
mod proxy;
mod redis;
mod shared;
mod table;
mod train;

use std::env;

use self::load::Load;
use self::options::Options;

fn main() {
    let arguments: &'static [String] = env::args().skip(1).collect::<Vec<_>>().leak();
    let words: Vec<&'static str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        // The roles that this program starts itself in.
        ["application", threads] => application::serve(threads.parse().expect("a number")),
        ["load", load] => load::run(Load::read(load)),
        ["pages", admin] => pages::open(admin.parse().expect("an address")),
        ["idle", load] => idle::hold(Load::read(load)),
        _ => measure_all(&Options::read(&words)),
    }
}

fn measure_all(options: &Options) {
    if let Some(binary) = options.trained {
        return train::run(binary);
    }
    let columns = options.columns();
    if let Some(counting) = options.counting {
        return instructions::run(&columns, options.job, counting);
    }
    let plan = &options.plan;
    if !columns.is_empty() {
        measure::run(plan, &columns, options.job);
    }
    if options.wants("cores") {
        cores::run(plan, &options.all());
    }
    if options.wants("redis") {
        shared::run(plan, options.binaries());
    }
    if options.wants("outcome") {
        outcome::run(plan);
    }
    if options.wants("fronts") {
        fronts::run(plan);
    }
    if options.wants("pages") {
        pages::run(plan);
    }
}
