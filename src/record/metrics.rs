//! Counters and histograms for Prometheus, labelled only by names from the configuration.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text;
use prometheus_client::metrics::TypedMetric;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Metric;
use prometheus_client::registry::Registry;

use super::histogram::Histogram;
use super::names;
use super::names::Name;

/// Every metric of the process. A reload keeps them: names that stay go on counting, names that go stay readable.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    limit_decisions: Family<LimitLabels, Counter>,
    outcomes: Family<OutcomeLabels, Counter>,
    request_duration: Family<RouteLabels, Histogram>,
    decision_duration: Family<RouteLabels, Histogram>,
    upstream_requests: Family<ServerLabels, Counter>,
    upstream_errors: Family<FailureLabels, Counter>,
    upstream_healthy: Family<ServerLabels, Gauge>,
    store_up: Family<StoreLabels, Gauge>,
    store_errors: Family<StoreLabels, Counter>,
    store_round_trip: Family<StoreLabels, Histogram>,
    store_keys: Family<StoreLabels, Gauge>,
    connections: Gauge,
    held: Gauge,
    bans: Gauge,
    reloads: Family<ReloadLabels, Counter>,
    last_reload_success: Gauge,
    dropped_lines: Gauge<i64, AtomicI64>,
    notifications: Family<NoticeLabels, Counter>,
    audit_dropped: Family<PlaceLabels, Counter>,
    /// Held from setting the gauges to reading them: two readers never see half of each other.
    reading: Mutex<()>,
}

/// What is asked for rather than counted: how things stand at the moment of reading.
#[derive(Clone, Debug, Default)]
pub struct Gauges {
    pub connections: usize,
    /// Requests that are delayed or tarpitted.
    pub held: usize,
    /// Keys and addresses that are banned.
    pub bans: usize,
    pub store: &'static str,
    pub store_up: bool,
    pub store_keys: usize,
    /// Upstream, server, whether it is healthy.
    pub servers: Vec<(Arc<str>, Arc<str>, bool)>,
    pub dropped_lines: u64,
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
            store_round_trip: register(&mut registry, names::STORE_ROUND_TRIP),
            store_keys: register(&mut registry, names::STORE_KEYS),
            connections: register(&mut registry, names::CONNECTIONS),
            held: register(&mut registry, names::HELD_REQUESTS),
            bans: register(&mut registry, names::BANS),
            reloads: register(&mut registry, names::CONFIG_RELOADS),
            last_reload_success: register(&mut registry, names::CONFIG_LAST_RELOAD_SUCCESS),
            dropped_lines: register(&mut registry, names::ACCESS_LOG_DROPPED),
            notifications: register(&mut registry, names::NOTIFICATIONS),
            audit_dropped: register(&mut registry, names::AUDIT_DROPPED),
            reading: Mutex::new(()),
            registry: Registry::default(),
        };
        let build: Family<BuildLabels, Gauge> = register(&mut registry, names::BUILD_INFO);
        build.get_or_create(&BuildLabels { version: env!("CARGO_PKG_VERSION") }).set(1);
        // What was read at the start is in force.
        metrics.last_reload_success.set(1);
        for result in [ReloadResult::Success, ReloadResult::Failure] {
            drop(metrics.reloads.get_or_create(&ReloadLabels { result: result.as_str() }));
        }
        Self { registry, ..metrics }
    }

    /// A configuration was read anew.
    pub fn reloaded(&self, result: ReloadResult) {
        self.reloads.get_or_create(&ReloadLabels { result: result.as_str() }).inc();
        self.last_reload_success.set(i64::from(result == ReloadResult::Success));
    }

    /// All of it as text, in the syntax a scraper asked for.
    pub fn expose(&self, gauges: &Gauges, exposition: Exposition) -> String {
        let _reading = self.reading.lock();
        self.set(gauges);
        let mut text = String::with_capacity(16 * 1024);
        text::encode(&mut text, &self.registry).expect("writing to a string does not fail");
        match exposition {
            Exposition::OpenMetrics => text,
            Exposition::Prometheus => as_prometheus(&text),
        }
    }

    fn set(&self, gauges: &Gauges) {
        let store = StoreLabels { kind: gauges.store };
        self.store_up.get_or_create(&store).set(i64::from(gauges.store_up));
        self.store_keys.get_or_create(&store).set(signed(gauges.store_keys));
        self.connections.set(signed(gauges.connections));
        self.held.set(signed(gauges.held));
        self.bans.set(signed(gauges.bans));
        self.dropped_lines.set(i64::try_from(gauges.dropped_lines).unwrap_or(i64::MAX));
        // A server that left the configuration is neither well nor ill.
        self.upstream_healthy.clear();
        for (upstream, server, healthy) in &gauges.servers {
            let labels = ServerLabels { upstream: upstream.to_string(), server: server.to_string() };
            self.upstream_healthy.get_or_create(&labels).set(i64::from(*healthy));
        }
    }

    /// What a store that is asked over a network adds to.
    pub fn store(&self, kind: &'static str) -> StoreMetrics {
        let labels = StoreLabels { kind };
        StoreMetrics {
            errors: self.store_errors.get_or_create_owned(&labels),
            round_trip: self.store_round_trip.get_or_create_owned(&labels),
        }
    }

    /// What a webhook adds to.
    pub(super) fn notices(&self, channel: &str) -> NoticeMetrics {
        let of = |result| {
            let labels = NoticeLabels { channel: channel.to_owned(), result };
            self.notifications.get_or_create_owned(&labels)
        };
        NoticeMetrics {
            delivered: of("delivered"),
            failed: of("failed"),
            dropped: of("dropped"),
            suppressed: of("suppressed"),
        }
    }

    pub(super) fn audit_dropped(&self, place: &'static str) -> Counter {
        self.audit_dropped.get_or_create_owned(&PlaceLabels { place })
    }

    pub(super) fn requests(&self, route: &str, decision: &'static str, status: &'static str) -> Counter {
        self.requests.get_or_create_owned(&RequestLabels { route: route.to_owned(), decision, status })
    }

    pub(super) fn limit_decisions(&self, limit: &str, decision: &'static str) -> Counter {
        self.limit_decisions.get_or_create_owned(&LimitLabels { limit: limit.to_owned(), decision })
    }

    pub(super) fn outcomes(&self, route: &str, outcome: &'static str) -> Counter {
        self.outcomes.get_or_create_owned(&OutcomeLabels { route: route.to_owned(), outcome })
    }

    pub(super) fn request_duration(&self, route: &str) -> Histogram {
        self.request_duration.get_or_create_owned(&RouteLabels { route: route.to_owned() })
    }

    pub(super) fn decision_duration(&self, route: &str) -> Histogram {
        self.decision_duration.get_or_create_owned(&RouteLabels { route: route.to_owned() })
    }

    pub(super) fn upstream_requests(&self, upstream: &str, server: &str) -> Counter {
        let labels = ServerLabels { upstream: upstream.to_owned(), server: server.to_owned() };
        self.upstream_requests.get_or_create_owned(&labels)
    }

    pub(super) fn upstream_errors(&self, upstream: &str, server: &str, cause: &'static str) -> Counter {
        let labels = FailureLabels { upstream: upstream.to_owned(), server: server.to_owned(), cause };
        self.upstream_errors.get_or_create_owned(&labels)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// How a store does, told by whoever asks it.
#[derive(Clone, Debug)]
pub struct StoreMetrics {
    errors: Counter,
    round_trip: Histogram,
}

impl StoreMetrics {
    /// A decision was asked for and answered within this span.
    pub fn answered(&self, span: Duration) {
        self.round_trip.observe(span);
    }

    /// A decision was not answered.
    pub fn failed(&self) {
        self.errors.inc();
    }
}

/// What became of the messages for a webhook.
#[derive(Clone, Debug)]
pub(super) struct NoticeMetrics {
    delivered: Counter,
    failed: Counter,
    dropped: Counter,
    suppressed: Counter,
}

impl NoticeMetrics {
    pub(super) fn delivered(&self) {
        self.delivered.inc();
    }

    /// It was tried until it was given up.
    pub(super) fn failed(&self) {
        self.failed.inc();
    }

    /// There was no room for it.
    pub(super) fn dropped(&self) {
        self.dropped.inc();
    }

    /// The same was told lately.
    pub(super) fn suppressed(&self) {
        self.suppressed.inc();
    }
}

/// What became of a reload.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReloadResult {
    Success,
    Failure,
}

impl ReloadResult {
    fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
        }
    }
}

/// The two syntaxes there are; they differ in how a counter is introduced.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Exposition {
    OpenMetrics,
    Prometheus,
}

fn register<M: Metric + Clone + Default + TypedMetric>(registry: &mut Registry, name: Name) -> M {
    let metric = M::default();
    registry.register(name.name, name.help, metric.clone());
    metric
}

/// `OpenMetrics` introduces a counter by its name without `_total`; the older syntax wants the name of its samples.
fn as_prometheus(open_metrics: &str) -> String {
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
                (Some(name), Some(said)) => text.extend(["# HELP ", name, "_total ", said, "\n"]),
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

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct RequestLabels {
    route: String,
    decision: &'static str,
    status: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct LimitLabels {
    limit: String,
    decision: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct OutcomeLabels {
    route: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct RouteLabels {
    route: String,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct ServerLabels {
    upstream: String,
    server: String,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct FailureLabels {
    upstream: String,
    server: String,
    cause: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct StoreLabels {
    kind: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct NoticeLabels {
    channel: String,
    result: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct PlaceLabels {
    place: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct ReloadLabels {
    result: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct BuildLabels {
    version: &'static str,
}

#[cfg(test)]
mod tests;
