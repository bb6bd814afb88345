//! Every metric of the process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

use super::table::{Counted, Writers};
use super::{
    CountedRoute, Fault, Gauges, Histogram, NotificationMetrics, ReloadResult, SpanMetrics, StoreMetrics, WriterHealth,
};
use crate::record::advice::UntrustedForwarding;
use crate::record::history::{History, Subject};
use crate::record::metrics::gauges::GaugeCollector;
use crate::record::metrics::table::{
    FailureLabels, LimitLabels, NotificationLabels, OutcomeLabels, PlaceLabels, ReloadLabels, RequestLabels,
    RouteLabels, ServerLabels, SpanLabels, StoreLabels,
};
use crate::rules::decision::FoundKey;
use crate::rules::outcome::Outcome;
use crate::words::clock::Timestamp;

/// A reload keeps all counters: counters of kept names go on, counters of removed names stay readable.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    counted: Counted,
    /// Follows the counters of requests and limits.
    history: History,
    /// How many requests had no usual key of each limit. Only advice reads it.
    found_keys: Mutex<BTreeMap<(Arc<str>, FoundKey), Counter>>,
    /// Forwarded requests that named their client, although their peer is no trusted proxy. Only advice reads it.
    untrusted_forwarding: UntrustedForwarding,
    /// Only the status reads their faults.
    writers: Writers,
    /// Locked while the routes of a scrape are shown.
    scrape: Mutex<()>,
}

impl Metrics {
    pub fn new() -> Self {
        let mut registry = Registry::default();
        let counted = Counted::register(&mut registry);
        counted.process_start_time.set(SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64());
        // The process runs, so the configuration that it read at the start is in force.
        counted.last_reload_success.set(1);
        for result in [ReloadResult::Success, ReloadResult::Failure] {
            drop(counted.reloads.get_or_create(&ReloadLabels { result: result.as_str() }));
        }
        Self {
            registry,
            counted,
            history: History::default(),
            found_keys: Mutex::default(),
            untrusted_forwarding: UntrustedForwarding::default(),
            writers: Writers::default(),
            scrape: Mutex::new(()),
        }
    }

    /// The growth of the counters of requests and limits in the last 24 hours.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Forwarded requests in which a peer that is no trusted proxy named its client.
    pub fn untrusted_forwarding(&self) -> &UntrustedForwarding {
        &self.untrusted_forwarding
    }

    /// How many requests lacked a part of the key of this limit, or had an unmatched name in it.
    pub fn found_key(&self, limit: &Arc<str>, found: FoundKey) -> u64 {
        self.found_keys.lock().get(&(Arc::clone(limit), found)).map_or(0, Counter::get)
    }

    /// How many answers on this route had this outcome.
    pub fn outcomes_so_far(&self, route: &str, outcome: &'static str) -> u64 {
        self.counted
            .outcomes
            .get(&OutcomeLabels { route: route.to_owned(), outcome })
            .map_or(0, |counter| counter.get())
    }

    pub(in crate::record) fn found_key_counter(&self, limit: &Arc<str>, found: FoundKey) -> Counter {
        self.found_keys.lock().entry((Arc::clone(limit), found)).or_default().clone()
    }

    /// Begins the series of a route with an outcome at 0, so that an alert sees the first sign-ins grow.
    pub(in crate::record) fn begin_outcomes(&self, route: &str) {
        for outcome in Outcome::ALL {
            drop(
                self.counted
                    .outcomes
                    .get_or_create(&OutcomeLabels { route: route.to_owned(), outcome: outcome.as_str() }),
            );
        }
        drop(self.signed_in_after_failures(route));
    }

    /// Sign-ins on a route to accounts that failed before.
    pub fn signed_in_after_failures(&self, route: &str) -> Counter {
        self.counted.signed_in_after_failures.get_or_create(&RouteLabels { route: route.to_owned() }).clone()
    }

    /// Counts a reload.
    pub fn count_reload(&self, result: ReloadResult) {
        self.counted.reloads.get_or_create(&ReloadLabels { result: result.as_str() }).inc();
        self.counted.last_reload_success.set(i64::from(result == ReloadResult::Success));
    }

    /// All metrics as text, in the format that the scraper asked for.
    pub fn expose(&self, gauges: Gauges, exposition: Exposition) -> String {
        let _scrape = self.scrape.lock();
        self.counted.requests.show(&gauges.routes);
        self.counted.outcomes.show(&gauges.routes);
        self.counted.signed_in_after_failures.show(&gauges.routes);
        self.counted.request_duration.show(&gauges.routes);
        self.counted.decision_duration.show(&gauges.routes);
        let mut read = Registry::default();
        read.register_collector(Box::new(GaugeCollector(gauges)));
        let mut text = String::with_capacity(16 * 1024);
        let written = text::encode_registry(&mut text, &self.registry).and_then(|()| text::encode(&mut text, &read));
        written.expect("writing to a string does not fail");
        match exposition {
            Exposition::OpenMetrics => text,
            Exposition::Prometheus => as_prometheus(&text),
        }
    }

    /// The metrics of a store that is reached over the network.
    pub fn store(&self, kind: &'static str) -> StoreMetrics {
        let labels = StoreLabels { kind };
        StoreMetrics {
            errors: self.counted.store_errors.get_or_create_owned(&labels),
            down: self.counted.store_down.get_or_create_owned(&labels),
            overload: self.counted.overload.clone(),
            leased: self.counted.store_leased.get_or_create_owned(&labels),
            round_trip: self.counted.store_round_trip.get_or_create_owned(&labels),
        }
    }

    /// The counters of a webhook.
    pub(in crate::record) fn notifications(&self, channel: &str) -> NotificationMetrics {
        let of = |result| {
            let labels = NotificationLabels { channel: channel.to_owned(), result };
            self.counted.notifications.get_or_create_owned(&labels)
        };
        NotificationMetrics {
            delivered: of("delivered"),
            failed: of("failed"),
            dropped: of("dropped"),
            suppressed: of("suppressed"),
        }
    }

    pub(in crate::record) fn spans(&self) -> SpanMetrics {
        let of = |result| self.counted.spans.get_or_create_owned(&SpanLabels { result });
        SpanMetrics { exported: of("exported"), failed: of("failed"), dropped: of("dropped") }
    }

    /// A writer of records begins. `about`: what it writes, as in a [`Fault`].
    pub(in crate::record) fn writer(&self, about: &'static str) -> Arc<WriterHealth> {
        self.writers.begin(about)
    }

    /// What cannot be written.
    pub fn writer_faults(&self, now: Timestamp) -> Vec<Fault> {
        self.writers.faults(now)
    }

    pub(in crate::record) fn audit_dropped(&self, place: &'static str) -> Counter {
        self.counted.audit_dropped.get_or_create_owned(&PlaceLabels { place })
    }

    pub(in crate::record) fn requests(
        &self,
        route: &CountedRoute,
        decision: &'static str,
        status: &'static str,
    ) -> Counter {
        let counter =
            self.counted.requests.get_or_create(&RequestLabels { route: route.label().to_owned(), decision, status });
        if let Some(name) = route.name() {
            self.history.follow(Subject::Route(name), decision, status, &counter);
        }
        counter
    }

    pub(in crate::record) fn limit_decisions(&self, limit: &Arc<str>, decision: &'static str) -> Counter {
        let counter =
            self.counted.limit_decisions.get_or_create_owned(&LimitLabels { limit: limit.to_string(), decision });
        self.history.follow(Subject::Limit(Arc::clone(limit)), decision, "", &counter);
        counter
    }

    pub(in crate::record) fn outcomes(&self, route: &CountedRoute, outcome: &'static str) -> Counter {
        let counter = self.counted.outcomes.get_or_create(&OutcomeLabels { route: route.label().to_owned(), outcome });
        if let Some(name) = route.name() {
            self.history.follow(Subject::Route(name), outcome, "", &counter);
        }
        counter
    }

    pub(in crate::record) fn request_duration(&self, route: &str) -> Histogram {
        self.counted.request_duration.get_or_create(&RouteLabels { route: route.to_owned() })
    }

    pub(in crate::record) fn decision_duration(&self, route: &str) -> Histogram {
        self.counted.decision_duration.get_or_create(&RouteLabels { route: route.to_owned() })
    }

    pub(in crate::record) fn upstream_requests(&self, upstream: &str, server: &str) -> Counter {
        let labels = ServerLabels { upstream: upstream.to_owned(), server: server.to_owned() };
        self.counted.upstream_requests.get_or_create_owned(&labels)
    }

    pub(in crate::record) fn upstream_errors(&self, upstream: &str, server: &str, cause: &'static str) -> Counter {
        let labels = FailureLabels { upstream: upstream.to_owned(), server: server.to_owned(), cause };
        self.counted.upstream_errors.get_or_create_owned(&labels)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

// The two text formats of metrics.

/// They differ in how a counter is introduced.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Exposition {
    OpenMetrics,
    Prometheus,
}

/// `OpenMetrics` introduces a counter by its name without `_total`. The older Prometheus format uses the name with it.
pub(super) fn as_prometheus(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len() + 512);
    let mut help = None;
    for line in open_metrics.lines() {
        if line.starts_with("# HELP ") {
            help = Some(line);
            continue;
        }
        let counter = line.strip_prefix("# TYPE ").and_then(|rest| rest.strip_suffix(" counter"));
        if let Some(line) = help.take() {
            match (counter, line.splitn(4, ' ').last()) {
                (Some(name), Some(words)) => text.extend(["# HELP ", name, "_total ", words, "\n"]),
                _ => text.extend([line, "\n"]),
            }
        }
        match counter {
            Some(name) => text.extend(["# TYPE ", name, "_total counter\n"]),
            None if line == "# EOF" => {}
            None => text.extend([line, "\n"]),
        }
    }
    text
}

#[cfg(test)]
mod tests;
