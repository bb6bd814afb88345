//! Every metric of the process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use parking_lot::Mutex;
use prometheus_client::encoding::text;
use prometheus_client::metrics::TypedMetric;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Metric, Registry};

use super::names::MetricName;
use super::{CountedRoute, Gauges, Histogram, NotificationMetrics, ReloadResult, SpanMetrics, StoreMetrics, names};
use crate::record::advice::UntrustedForwarding;
use crate::record::history::{History, Subject};
use crate::record::metrics::gauges::ProcessCollector;
use crate::record::metrics::names::{
    BuildLabels, CertificateLabels, FailureLabels, LimitLabels, ListLabels, NotificationLabels, OutcomeLabels,
    PlaceLabels, ReloadLabels, RequestLabels, RouteLabels, ServerLabels, SpanLabels, StoreLabels, VerdictLabels,
};
use crate::record::metrics::route::RouteFamily;
use crate::rules::decision::FoundKey;

/// A reload keeps all counters: counters of kept names go on, counters of removed names stay readable.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: RouteFamily<RequestLabels, Counter>,
    limit_decisions: Family<LimitLabels, Counter>,
    outcomes: RouteFamily<OutcomeLabels, Counter>,
    request_duration: RouteFamily<RouteLabels, Histogram>,
    decision_duration: RouteFamily<RouteLabels, Histogram>,
    upstream_requests: Family<ServerLabels, Counter>,
    upstream_errors: Family<FailureLabels, Counter>,
    upstream_healthy: Family<ServerLabels, Gauge>,
    store_up: Family<StoreLabels, Gauge>,
    store_errors: Family<StoreLabels, Counter>,
    store_down: Family<StoreLabels, Counter>,
    overload: Counter,
    store_leased: Family<StoreLabels, Counter>,
    store_round_trip: Family<StoreLabels, Histogram>,
    store_part: Family<StoreLabels, Gauge<f64, AtomicU64>>,
    store_keys: Family<StoreLabels, Gauge>,
    connections: Gauge,
    rejected_connections: Counter,
    held: Gauge,
    bans: Gauge,
    sessions: Gauge,
    verdict: Family<VerdictLabels, Gauge>,
    reloads: Family<ReloadLabels, Counter>,
    last_reload_success: Gauge,
    certificate_expiry: Family<CertificateLabels, Gauge>,
    list_entries: Family<ListLabels, Gauge>,
    list_source_up: Family<ListLabels, Gauge>,
    dropped_lines: Gauge<i64, AtomicI64>,
    notifications: Family<NotificationLabels, Counter>,
    audit_dropped: Family<PlaceLabels, Counter>,
    spans: Family<SpanLabels, Counter>,
    /// Follows the counters of requests and limits.
    history: History,
    /// How many requests had no usual key of each limit. Only advice reads it.
    found_keys: Mutex<BTreeMap<(Arc<str>, FoundKey), Counter>>,
    /// Forwarded requests that named their client, although their peer is no trusted proxy. Only advice reads it.
    untrusted_forwarding: UntrustedForwarding,
    /// Locked from setting the gauges to reading them, so that two scrapes do not mix their values.
    scrape: Mutex<()>,
}

impl Metrics {
    pub fn new() -> Self {
        let mut registry = Registry::default();
        let metrics = Self {
            requests: register(&mut registry, names::REQUESTS),
            limit_decisions: register(&mut registry, names::LIMIT_DECISIONS),
            outcomes: register(&mut registry, names::OUTCOMES),
            request_duration: register(&mut registry, names::REQUEST_DURATION),
            decision_duration: register(&mut registry, names::DECISION_DURATION),
            upstream_requests: register(&mut registry, names::UPSTREAM_REQUESTS),
            upstream_errors: register(&mut registry, names::UPSTREAM_ERRORS),
            upstream_healthy: register(&mut registry, names::UPSTREAM_HEALTHY),
            store_up: register(&mut registry, names::STORE_UP),
            store_errors: register(&mut registry, names::STORE_ERRORS),
            store_down: register(&mut registry, names::STORE_DOWN),
            overload: register(&mut registry, names::OVERLOAD),
            store_leased: register(&mut registry, names::STORE_LEASED),
            store_round_trip: register(&mut registry, names::STORE_ROUND_TRIP),
            store_part: register(&mut registry, names::STORE_PART),
            store_keys: register(&mut registry, names::STORE_KEYS),
            connections: register(&mut registry, names::CONNECTIONS),
            rejected_connections: register(&mut registry, names::REJECTED_CONNECTIONS),
            held: register(&mut registry, names::HELD_REQUESTS),
            bans: register(&mut registry, names::BANS),
            sessions: register(&mut registry, names::SESSIONS),
            verdict: register(&mut registry, names::VERDICT),
            reloads: register(&mut registry, names::CONFIG_RELOADS),
            last_reload_success: register(&mut registry, names::CONFIG_LAST_RELOAD_SUCCESS),
            certificate_expiry: register(&mut registry, names::CERTIFICATE_EXPIRY),
            list_entries: register(&mut registry, names::LIST_ENTRIES),
            list_source_up: register(&mut registry, names::LIST_SOURCE_UP),
            dropped_lines: register(&mut registry, names::ACCESS_LOG_DROPPED),
            notifications: register(&mut registry, names::NOTIFICATIONS),
            audit_dropped: register(&mut registry, names::AUDIT_DROPPED),
            spans: register(&mut registry, names::TRACE_SPANS),
            history: History::default(),
            found_keys: Mutex::default(),
            untrusted_forwarding: UntrustedForwarding::default(),
            scrape: Mutex::new(()),
            registry: Registry::default(),
        };
        let build: Family<BuildLabels, Gauge> = register(&mut registry, names::BUILD_INFO);
        build.get_or_create(&BuildLabels { version: env!("CARGO_PKG_VERSION") }).set(1);
        // The process runs, so the configuration that it read at the start is in force.
        metrics.last_reload_success.set(1);
        for result in [ReloadResult::Success, ReloadResult::Failure] {
            drop(metrics.reloads.get_or_create(&ReloadLabels { result: result.as_str() }));
        }
        registry.register_collector(Box::new(ProcessCollector::new()));
        Self { registry, ..metrics }
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
        self.outcomes.get(&OutcomeLabels { route: route.to_owned(), outcome }).map_or(0, |counter| counter.get())
    }

    pub(in crate::record) fn found_key_counter(&self, limit: &Arc<str>, found: FoundKey) -> Counter {
        self.found_keys.lock().entry((Arc::clone(limit), found)).or_default().clone()
    }

    /// Counts a reload.
    pub fn count_reload(&self, result: ReloadResult) {
        self.reloads.get_or_create(&ReloadLabels { result: result.as_str() }).inc();
        self.last_reload_success.set(i64::from(result == ReloadResult::Success));
    }

    /// All metrics as text, in the format that the scraper asked for.
    pub fn expose(&self, gauges: &Gauges, exposition: Exposition) -> String {
        let _scrape = self.scrape.lock();
        self.set(gauges);
        let mut text = String::with_capacity(16 * 1024);
        text::encode(&mut text, &self.registry).expect("writing to a string does not fail");
        match exposition {
            Exposition::OpenMetrics => text,
            Exposition::Prometheus => as_prometheus(&text),
        }
    }

    fn set(&self, gauges: &Gauges) {
        self.requests.show(&gauges.routes);
        self.outcomes.show(&gauges.routes);
        self.request_duration.show(&gauges.routes);
        self.decision_duration.show(&gauges.routes);
        let store = StoreLabels { kind: gauges.store };
        self.store_up.get_or_create(&store).set(i64::from(gauges.store_up));
        if let Some(part) = gauges.store_part {
            self.store_part.get_or_create(&store).set(part);
        }
        self.store_keys.get_or_create(&store).set(signed(gauges.store_keys));
        self.connections.set(signed(gauges.connections));
        self.rejected_connections.inner().store(gauges.rejected_connections, Ordering::Relaxed);
        self.held.set(signed(gauges.held));
        self.bans.set(signed(gauges.bans));
        self.sessions.set(signed(gauges.sessions));
        for (level, holds) in &gauges.verdict {
            self.verdict.get_or_create(&VerdictLabels { level }).set(i64::from(*holds));
        }
        self.dropped_lines.set(i64::try_from(gauges.dropped_lines).unwrap_or(i64::MAX));
        // A server that a reload removed is no longer reported.
        self.upstream_healthy.clear();
        for (upstream, server, healthy) in &gauges.servers {
            let labels = ServerLabels { upstream: upstream.to_string(), server: server.to_string() };
            self.upstream_healthy.get_or_create(&labels).set(i64::from(*healthy));
        }
        self.certificate_expiry.clear();
        for (name, expires) in &gauges.certificates {
            self.certificate_expiry.get_or_create(&CertificateLabels { name: name.clone() }).set(*expires);
        }
        self.list_entries.clear();
        self.list_source_up.clear();
        for list in &gauges.lists {
            let labels = ListLabels { list: list.name.to_string() };
            self.list_entries.get_or_create(&labels).set(signed(list.entries));
            self.list_source_up.get_or_create(&labels).set(i64::from(list.is_up()));
        }
    }

    /// The metrics of a store that is reached over the network.
    pub fn store(&self, kind: &'static str) -> StoreMetrics {
        let labels = StoreLabels { kind };
        StoreMetrics {
            errors: self.store_errors.get_or_create_owned(&labels),
            down: self.store_down.get_or_create_owned(&labels),
            overload: self.overload.clone(),
            leased: self.store_leased.get_or_create_owned(&labels),
            round_trip: self.store_round_trip.get_or_create_owned(&labels),
        }
    }

    /// The counters of a webhook.
    pub(in crate::record) fn notifications(&self, channel: &str) -> NotificationMetrics {
        let of = |result| {
            let labels = NotificationLabels { channel: channel.to_owned(), result };
            self.notifications.get_or_create_owned(&labels)
        };
        NotificationMetrics {
            delivered: of("delivered"),
            failed: of("failed"),
            dropped: of("dropped"),
            suppressed: of("suppressed"),
        }
    }

    pub(in crate::record) fn spans(&self) -> SpanMetrics {
        let of = |result| self.spans.get_or_create_owned(&SpanLabels { result });
        SpanMetrics { exported: of("exported"), failed: of("failed"), dropped: of("dropped") }
    }

    pub(in crate::record) fn audit_dropped(&self, place: &'static str) -> Counter {
        self.audit_dropped.get_or_create_owned(&PlaceLabels { place })
    }

    pub(in crate::record) fn requests(
        &self,
        route: &CountedRoute,
        decision: &'static str,
        status: &'static str,
    ) -> Counter {
        let counter = self.requests.get_or_create(&RequestLabels { route: route.label().to_owned(), decision, status });
        if let Some(name) = route.name() {
            self.history.follow(Subject::Route(name), decision, status, &counter);
        }
        counter
    }

    pub(in crate::record) fn limit_decisions(&self, limit: &Arc<str>, decision: &'static str) -> Counter {
        let counter = self.limit_decisions.get_or_create_owned(&LimitLabels { limit: limit.to_string(), decision });
        self.history.follow(Subject::Limit(Arc::clone(limit)), decision, "", &counter);
        counter
    }

    pub(in crate::record) fn outcomes(&self, route: &CountedRoute, outcome: &'static str) -> Counter {
        let counter = self.outcomes.get_or_create(&OutcomeLabels { route: route.label().to_owned(), outcome });
        if let Some(name) = route.name() {
            self.history.follow(Subject::Route(name), outcome, "", &counter);
        }
        counter
    }

    pub(in crate::record) fn request_duration(&self, route: &str) -> Histogram {
        self.request_duration.get_or_create(&RouteLabels { route: route.to_owned() })
    }

    pub(in crate::record) fn decision_duration(&self, route: &str) -> Histogram {
        self.decision_duration.get_or_create(&RouteLabels { route: route.to_owned() })
    }

    pub(in crate::record) fn upstream_requests(&self, upstream: &str, server: &str) -> Counter {
        let labels = ServerLabels { upstream: upstream.to_owned(), server: server.to_owned() };
        self.upstream_requests.get_or_create_owned(&labels)
    }

    pub(in crate::record) fn upstream_errors(&self, upstream: &str, server: &str, cause: &'static str) -> Counter {
        let labels = FailureLabels { upstream: upstream.to_owned(), server: server.to_owned(), cause };
        self.upstream_errors.get_or_create_owned(&labels)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

fn register<M: Metric + Clone + Default + TypedMetric>(registry: &mut Registry, name: MetricName) -> M {
    let metric = M::default();
    registry.register(name.name, name.help, metric.clone());
    metric
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
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
