//! What it costs that answers are counted: two limits on failures beside two on requests, in memory, none of which
//! binds.

use std::time::Instant;

use super::job::Job;
use super::measure;
use super::measure::Plan;
use super::peer::Peer;
use super::peer::Start;
use super::process::Cores;
use super::process::Process;
use super::proxy::Proxy;
use super::proxy::Setup;
use super::table;

/// The first is what the others are compared to.
pub(crate) const JOBS: [Job; 3] = [
    Job::new("two limits on requests", "/plain", 200),
    Job::new("two limits on failures, each a failure", "/failure", 200),
    Job::new("two limits on failures, each a success", "/success", 200),
];

/// What was measured of one job, microseconds for each round.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) cpu: Vec<f64>,
}

/// Measures all three of one process and prints it.
pub(crate) fn run(plan: &Plan) {
    let (application, address) = Process::of_this_program(Cores::Second, &["application", "1"]);
    let peer = Peer::start(Start::new(Proxy::PORTCULLIS, Setup::Outcome, &address));
    measure::first_answer(peer.address, Instant::now());
    let mut rows = JOBS.map(|job| Row { name: job.name, cpu: Vec::new() });
    for round in 0..plan.rounds {
        for (job, row) in JOBS.iter().zip(&mut rows) {
            let spent = measure::spent(&peer, *job, plan.round, Cores::Second);
            eprintln!("round {round}, {}: {}", job.name, spent.told);
            row.cpu.push(spent.micros);
        }
    }
    drop((peer, application));
    table::print_outcome(plan, &rows);
}
