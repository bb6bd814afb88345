//! What the record does once a second, on the thread that serves no request.

use std::time::Duration;

use tokio::time::MissedTickBehavior;
use tokio::time::interval;

use crate::clock;
use crate::record::Sinks;

/// Reads the counters for the history, and ends the minutes of the counts by key. Never returns.
pub(super) async fn run(sinks: Sinks) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let now = clock::wall();
        sinks.metrics().history().read_counters(now);
        sinks.key_tables().finish_minutes(now);
    }
}

/// Short beside a step of the history, so that what is counted stands in the step in which it happened.
const INTERVAL: Duration = Duration::from_secs(1);
