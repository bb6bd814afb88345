//! When gateways had no Redis, by their own logs.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::containers::Container;
use crate::support::Stopwatch;

/// A time without one of the Redis servers, by the clock of the test.
#[derive(Debug)]
pub(super) struct Outage {
    gateway: usize,
    server: String,
    began: Duration,
    ended: Duration,
}

/// All outages so far of these gateways. One that has not ended ends at `Duration::MAX`.
#[track_caller]
pub(super) fn logged_by(gateways: &[Container], clock: Stopwatch) -> Vec<Outage> {
    // The clock is read after the logs, so that no line is of a later time.
    let logs: Vec<String> = gateways.iter().map(Container::log).collect();
    let (now, elapsed) = (Timestamp::now(), clock.elapsed());
    let since_start = |time: Timestamp| {
        elapsed.saturating_sub(Duration::try_from(now.duration_since(time)).expect("a line of the past"))
    };
    let mut outages: Vec<Outage> = Vec::new();
    for (gateway, log) in logs.iter().enumerate() {
        for line in log.lines() {
            let line: Value = serde_json::from_str(line).expect("the log of a gateway is JSON");
            let Some(server) = line["server"].as_str() else { continue };
            let time = since_start(line["time"].as_str().and_then(|time| time.parse().ok()).expect("a time"));
            let is_of_it = |outage: &Outage| outage.gateway == gateway && outage.server == server;
            if line["cause"].is_string() {
                // A server that answers otherwise than before has a further line, and is away since the first.
                if !outages.iter().any(|outage| is_of_it(outage) && outage.ended == Duration::MAX) {
                    outages.push(Outage { gateway, server: server.to_owned(), began: time, ended: Duration::MAX });
                }
            } else if let Some(milliseconds) = line["outage_ms"].as_u64() {
                let open = outages.iter_mut().rfind(|outage| is_of_it(outage));
                let outage = open.expect("it was logged as down");
                outage.ended = outage.began + Duration::from_millis(milliseconds);
            }
        }
    }
    outages
}

/// The gateways that had no Redis, or not all of it, at some time within a span.
pub(super) fn gateways_without_redis(outages: &[Outage], from: Duration, until: Duration) -> BTreeSet<usize> {
    let within = outages.iter().filter(|outage| outage.began < until && outage.ended > from);
    within.map(|outage| outage.gateway).collect()
}
