//! The counters of one limit.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{array, fmt};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::{MetricType, TypedMetric};

use crate::record::UpstreamRecord;
use crate::record::metrics::Metrics;
use crate::record::request_record::LimitDecision;
use crate::rules::decision::{FoundKey, LimitReport};

#[derive(Debug)]
pub(in crate::record) struct LimitMetrics {
    pub(in crate::record) name: Arc<str>,
    /// By decision.
    decisions: [OnceLock<Counter>; LimitDecision::COUNT],
    lacking: OnceLock<Counter>,
    unmatched: OnceLock<Counter>,
}

impl LimitMetrics {
    pub(in crate::record) fn new(name: &Arc<str>) -> Self {
        let decisions = array::from_fn(|_| OnceLock::new());
        Self { name: Arc::clone(name), decisions, lacking: OnceLock::new(), unmatched: OnceLock::new() }
    }

    /// Counts the decision about a request.
    pub(in crate::record) fn count(&self, metrics: &Metrics, report: LimitReport) {
        let decision = LimitDecision::of(report.shadow, report.applied);
        let counter = &self.decisions[decision as usize];
        counter.get_or_init(|| metrics.limit_decisions(&self.name, decision.as_str())).inc();
        let unusual = match report.found {
            FoundKey::Whole => return,
            FoundKey::Lacking => &self.lacking,
            FoundKey::Unmatched => &self.unmatched,
        };
        unusual.get_or_init(|| metrics.found_key_counter(&self.name, report.found)).inc();
    }
}

// The counters of one webhook.

#[derive(Clone, Debug)]
pub(in crate::record) struct NotificationMetrics {
    pub(super) delivered: Counter,
    pub(super) failed: Counter,
    pub(super) dropped: Counter,
    pub(super) suppressed: Counter,
}

impl NotificationMetrics {
    pub(in crate::record) fn delivered(&self) {
        self.delivered.inc();
    }

    /// Every attempt failed.
    pub(in crate::record) fn failed(&self) {
        self.failed.inc();
    }

    /// The queue was full.
    pub(in crate::record) fn dropped(&self) {
        self.dropped.inc();
    }

    /// Counts a notification that was suppressed: the same limit and key had one lately.
    pub(in crate::record) fn suppressed(&self) {
        self.suppressed.inc();
    }
}

// The `result` of a reload.

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReloadResult {
    Success,
    Failure,
}

impl ReloadResult {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
        }
    }
}

// The counters of spans.

#[derive(Clone, Debug)]
pub(in crate::record) struct SpanMetrics {
    pub(super) exported: Counter,
    pub(super) failed: Counter,
    pub(super) dropped: Counter,
}

impl SpanMetrics {
    pub(in crate::record) fn exported(&self, spans: usize) {
        self.exported.inc_by(count(spans));
    }

    /// The collector did not take them.
    pub(in crate::record) fn failed(&self, spans: usize) {
        self.failed.inc_by(count(spans));
    }

    /// The queue was full.
    pub(in crate::record) fn dropped(&self, spans: usize) {
        self.dropped.inc_by(count(spans));
    }
}

fn count(spans: usize) -> u64 {
    u64::try_from(spans).unwrap_or(u64::MAX)
}

// The metrics of a store that is reached over the network.

#[derive(Clone, Debug)]
pub struct StoreMetrics {
    pub(super) errors: Counter,
    pub(super) down: Counter,
    pub(super) overload: Counter,
    pub(super) leased: Counter,
    pub(super) round_trip: Histogram,
}

impl StoreMetrics {
    /// The store answered a decision within this span.
    pub fn answered(&self, span: Duration) {
        self.round_trip.observe(span);
    }

    /// A decision needed no call: what this gateway has leased paid for it.
    pub fn leased(&self) {
        self.leased.inc();
    }

    /// The store did not answer a decision.
    pub fn failed(&self) {
        self.errors.inc();
    }

    /// A server of the store was up until now, and is down.
    pub fn went_down(&self) {
        self.down.inc();
    }

    /// A request was refused because this gateway is too busy to ask the store.
    pub fn overloaded(&self) {
        self.overload.inc();
    }
}

// The counters of the servers of one upstream.

/// The names of an upstream and its servers, as the configuration writes them.
#[derive(Clone, Debug)]
pub struct ServerNames {
    pub upstream: Arc<str>,
    pub servers: Vec<Arc<str>>,
}

#[derive(Debug)]
pub(in crate::record) struct UpstreamMetrics {
    pub(in crate::record) name: Arc<str>,
    /// Usually a few, so a linear search is quicker than hashing a name.
    servers: Vec<(Arc<str>, Counter)>,
}

impl UpstreamMetrics {
    pub(in crate::record) fn new(metrics: &Metrics, names: ServerNames) -> Self {
        let ServerNames { upstream, servers } = names;
        let counters = servers.into_iter().map(|server| {
            let counter = metrics.upstream_requests(&upstream, &server);
            (server, counter)
        });
        Self { servers: counters.collect(), name: upstream }
    }

    pub(in crate::record) fn count(&self, metrics: &Metrics, record: UpstreamRecord<'_>) {
        let server = record.server.unwrap_or_default();
        if let Some((_, counter)) = self.servers.iter().find(|(name, _)| **name == *server) {
            counter.inc();
        }
        if let Some(cause) = record.failure {
            metrics.upstream_errors(&self.name, server, cause).inc();
        }
        for (server, cause) in record.previous_attempts {
            metrics.upstream_errors(&self.name, server, cause).inc();
        }
    }
}

// A histogram that cores add to without a lock.

/// Upper bounds in nanoseconds: 1 µs is a decision in memory, 60 s an application at its worst.
const BOUNDS: [u64; 19] = [
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    50_000_000,
    250_000_000,
    1_000_000_000,
    5_000_000_000,
    20_000_000_000,
    60_000_000_000,
];

/// The bucket of the shortest duration with this many leading zeros. Each bound is at least twice the one before, so
/// the longest is in the same bucket or in the next.
const LOWEST_BUCKETS: [usize; 65] = {
    let mut lowest = [0; 65];
    let mut zeros = 0;
    while zeros < 64 {
        while lowest[zeros] < BOUNDS.len() && BOUNDS[lowest[zeros]] < 1 << (63 - zeros) {
            lowest[zeros] += 1;
        }
        zeros += 1;
    }
    lowest
};

/// Counts durations by bucket. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct Histogram(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// One for each of [`BOUNDS`], and one for longer durations.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    sum_nanos: AtomicU64,
}

impl Histogram {
    pub fn observe(&self, duration: Duration) {
        let nanos = duration.as_secs().saturating_mul(1_000_000_000).saturating_add(duration.subsec_nanos().into());
        self.0.buckets[bucket(nanos)].fetch_add(1, Ordering::Relaxed);
        self.0.sum_nanos.fetch_add(nanos, Ordering::Relaxed);
    }
}

/// The first bucket whose bound is not exceeded.
fn bucket(nanos: u64) -> usize {
    let lowest = LOWEST_BUCKETS[nanos.leading_zeros() as usize];
    lowest + usize::from(BOUNDS.get(lowest).is_some_and(|bound| *bound < nanos))
}

impl EncodeMetric for Histogram {
    #[expect(clippy::cast_precision_loss, reason = "an exposition has floats, and the sum is exact up to 104 days")]
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        let counts = self.0.buckets.each_ref().map(|bucket| bucket.load(Ordering::Relaxed));
        let bounds = BOUNDS.iter().map(|nanos| *nanos as f64 / 1e9).chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
        let sum = self.0.sum_nanos.load(Ordering::Relaxed) as f64 / 1e9;
        encoder.encode_histogram::<NoLabelSet>(sum, counts.iter().sum(), &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

impl TypedMetric for Histogram {
    const TYPE: MetricType = MetricType::Histogram;
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text;
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn a_duration_counts_in_every_bucket_at_or_above_it() {
        let histogram = Histogram::default();
        histogram.observe(Duration::from_millis(1));
        histogram.observe(Duration::from_millis(2));
        histogram.observe(Duration::from_secs(600));

        let text = exposition(&histogram);
        assert!(text.contains("d_bucket{le=\"0.0005\"} 0\n"), "{text}");
        assert!(text.contains("d_bucket{le=\"0.001\"} 1\n"), "{text}");
        assert!(text.contains("d_bucket{le=\"0.0025\"} 2\n"), "{text}");
        assert!(text.contains("d_bucket{le=\"60.0\"} 2\n"), "{text}");
        assert!(text.contains("d_bucket{le=\"+Inf\"} 3\n"), "{text}");
        assert!(text.contains("d_count 3\n"), "{text}");
        assert!(text.contains("d_sum 600.003"), "{text}");
    }

    #[test]
    fn every_duration_is_in_the_first_bucket_that_has_room_for_it() {
        let near_bounds = BOUNDS.iter().flat_map(|bound| [bound - 1, *bound, bound + 1]);
        let near_powers = (0..64).map(|power| 1_u64 << power).flat_map(|power| [power - 1, power, power + 1]);
        for nanos in near_bounds.chain(near_powers).chain([u64::MAX]) {
            assert_eq!(bucket(nanos), BOUNDS.partition_point(|bound| *bound < nanos), "{nanos}");
        }
        let histogram = Histogram::default();
        histogram.observe(Duration::MAX);
        assert!(exposition(&histogram).contains("d_count 1\n"));
    }

    fn exposition(histogram: &Histogram) -> String {
        let mut registry = Registry::default();
        registry.register("d", "d", histogram.clone());
        let mut text = String::new();
        text::encode(&mut text, &registry).unwrap();
        text
    }
}
