//! The load that a release is built for: every job for a moment, on a binary that counts what it runs.

use std::time::{Duration, Instant};

use super::job::{JOBS, Job};
use super::peer::{Peer, Start};
use super::process::{Cores, Process};
use super::proxy::Proxy;
use super::{measure, outcome};

/// Has the binary do them all.
pub(crate) fn run(binary: Proxy) {
    let (application, address) = Process::of_this_program(Cores::Second, &["application", "1"]);
    let mut jobs: Vec<Job> = JOBS.into_iter().chain(outcome::JOBS).collect();
    while let Some(&Job { setup, .. }) = jobs.first() {
        let mut peer = Peer::start(Start::new(binary, setup, &address));
        measure::first_answer(peer.address, Instant::now());
        for job in jobs.extract_if(.., |job| job.setup == setup) {
            eprintln!("{}: {}", job.name, measure::spent(&peer, job, MOMENT, Cores::Second).told);
        }
        // What it has counted is written at its end, and would be lost if it were killed.
        assert!(peer.process.stop(ENDS_WITHIN), "{} did not end", binary.name);
    }
    drop(application);
}

/// Thousands of requests, also of a binary that counts every step.
const MOMENT: Duration = Duration::from_secs(2);

const ENDS_WITHIN: Duration = Duration::from_secs(60);
