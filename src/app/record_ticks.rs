//! What the record does once a second, on the thread that serves no request.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::time::MissedTickBehavior;
use tokio::time::interval;

use super::observe::observe;
use crate::clock;
use crate::gateway::Snapshot;
use crate::record::Sinks;

/// Reads the counters for the history, ends the minutes of the counts by key, and judges what looks misconfigured. Never
/// returns.
pub(super) async fn run(live: Arc<ArcSwap<Snapshot>>, sinks: Sinks) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let now = clock::wall();
        sinks.metrics().history().read_counters(now);
        sinks.key_tables().finish_minutes(now);
        let observed = observe(&live.load(), &sinks, now);
        sinks.advisor().judge(&observed, now);
    }
}

/// Short beside a step of the history, so that what is counted stands in the step in which it happened.
const INTERVAL: Duration = Duration::from_secs(1);
