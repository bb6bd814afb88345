//! What a decision costs where a proxy asks for it, beside the same decision where the gateway acts on it.

use super::against_first;
use super::job::{Call, Job, Over};
use super::measure::Plan;
use super::proxy::Setup;

/// The first is what the others are compared to.
const REFUSED: [Job; 4] = [
    job("refused", "/refused", 429),
    asked("forward auth, denied", "/refused", 429),
    called("Check, denied", "/refused", 429, Call::Check),
    called("ShouldRateLimit, over the limit", "/refused", 429, Call::ShouldRateLimit),
];

/// The same for requests that may pass: a proxy gets an answer without a body.
const PASSED: [Job; 4] = [
    job("proxied", "/", 200),
    Job { answer: "", ..asked("forward auth, passed", "/", 200) },
    called("Check, passed", "/", 200, Call::Check),
    called("ShouldRateLimit, below the limit", "/", 200, Call::ShouldRateLimit),
];

const fn job(name: &'static str, path: &'static str, status: u16) -> Job {
    Job { setup: Setup::Fronts, ..Job::new(name, path, status) }
}

const fn asked(name: &'static str, path: &'static str, status: u16) -> Job {
    job(name, path, status).over(Over::ForwardAuth)
}

/// One call at a time on each connection.
const fn called(name: &'static str, path: &'static str, status: u16, call: Call) -> Job {
    job(name, path, status).over(Over::Grpc(call, 1))
}

/// Measures all of them on 64 connections and on one.
pub(crate) fn run(plan: &Plan) {
    for (connections, title) in [(64, "portcullis, one core, 64 connections"), (1, "the same on one connection")] {
        for jobs in [REFUSED, PASSED] {
            against_first::run(plan, title, &jobs.map(|job| Job { connections, ..job }));
        }
    }
}
