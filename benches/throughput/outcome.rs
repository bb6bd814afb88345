//! What it costs that answers are counted: two limits on failures beside two on requests, in memory, none of which
//! binds.

use super::against_first;
use super::job::Job;
use super::measure::Plan;
use super::proxy::Setup;

/// The first is what the others are compared to.
pub(crate) const JOBS: [Job; 3] = [
    job("two limits on requests", "/plain"),
    job("two limits on failures, each a failure", "/failure"),
    job("two limits on failures, each a success", "/success"),
];

const fn job(name: &'static str, path: &'static str) -> Job {
    Job { setup: Setup::Outcome, ..Job::new(name, path, 200) }
}

/// Measures all three and prints them.
pub(crate) fn run(plan: &Plan) {
    against_first::run(plan, "portcullis, one core, 64 keep-alive connections", &JOBS);
}
