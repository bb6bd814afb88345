//! Jobs of one process of portcullis, each compared to the first.

use std::time::Instant;

use super::job::Job;
use super::measure::Plan;
use super::peer::{Peer, Start};
use super::process::{Cores, Process};
use super::proxy::Proxy;
use super::{measure, table};

/// What was measured of one job, microseconds for each round.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) cpu: Vec<f64>,
}

/// Measures the jobs, all of one setup, and prints them under this title.
pub(crate) fn run(plan: &Plan, title: &str, jobs: &[Job]) {
    let (application, address) = Process::of_this_program(Cores::Second, &["application", "1"]);
    let peer = Peer::start(Start::new(Proxy::PORTCULLIS, jobs[0].setup, &address));
    measure::first_answer(peer.address, Instant::now());
    let mut rows: Vec<Row> = jobs.iter().map(|job| Row { name: job.name, cpu: Vec::new() }).collect();
    for round in 0..plan.rounds {
        for (job, row) in jobs.iter().zip(&mut rows) {
            let spent = measure::spent(&peer, *job, plan.round, Cores::Second);
            eprintln!("round {round}, {}: {}", job.name, spent.told);
            row.cpu.push(spent.micros);
        }
    }
    drop((peer, application));
    table::print_against_first(plan, title, &rows);
}
