//! Clients that always ask for more than the limits admit, and the answers they got.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::{Caller, Stopwatch, repeat_until};

/// The routes, named after their policy for outages.
pub(super) const POLICIES: [&str; 2] = ["deny", "local"];

/// So many keys share the load: each asks for several times its limit.
pub(super) const KEYS: usize = 12;

/// Connections of each gateway's clients, half of them for each policy.
const CONNECTIONS: usize = 8;

/// Between two rounds: the load is to be steady, not the most that the machine can do.
const PAUSE: Duration = Duration::from_millis(30);

/// One request and what came of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) policy: usize,
    pub(super) sent: Duration,
    pub(super) answered: Duration,
    /// `None`: the connection was lost.
    pub(super) status: Option<u16>,
}

/// Asks one gateway until it is over.
pub(super) fn ask(gateway: usize, address: SocketAddr, clock: Stopwatch, over: &AtomicBool) -> Vec<Sample> {
    let mut callers: Vec<Caller> = (0..CONNECTIONS).map(|_| Caller::default()).collect();
    let mut samples = Vec::new();
    repeat_until(
        || over.load(Ordering::SeqCst),
        PAUSE,
        || {
            let asked: Vec<(usize, Duration)> = callers
                .iter_mut()
                .enumerate()
                .map(|(place, caller)| {
                    let policy = place % POLICIES.len();
                    let sent = clock.elapsed();
                    let target = format!("/{}/{gateway}", POLICIES[policy]);
                    caller.ask(address, &target, &format!("key-{}", fastrand::usize(..KEYS)), clock);
                    (policy, sent)
                })
                .collect();
            for (caller, (policy, sent)) in callers.iter_mut().zip(asked) {
                let status = caller.answer();
                samples.push(Sample { policy, sent, answered: clock.elapsed(), status });
            }
        },
    );
    samples
}
