#![doc = include_str!("help.txt")]
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

const HELP: &str = include_str!("help.txt");

fn main() {
    let arguments: &'static [String] = env::args().skip(1).collect::<Vec<_>>().leak();
    let words: Vec<&'static str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        // The roles that this program starts itself in.
        ["application", threads] => application::serve(threads.parse().expect("a number")),
        ["load", load] => load::run(Load::read(load)),
        ["pages", admin] => pages::open(admin.parse().expect("an address")),
        ["idle", load] => idle::hold(Load::read(load)),
        _ if words.iter().any(|word| matches!(*word, "--help" | "-h")) => print!("{HELP}"),
        _ => match Options::read(&words) {
            Ok(options) => measure_all(&options),
            Err(mistake) => {
                eprintln!("{mistake}\n\n{HELP}");
                std::process::exit(2);
            }
        },
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
