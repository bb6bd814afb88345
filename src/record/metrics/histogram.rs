//! A histogram that cores add to without a lock.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use prometheus_client::encoding::EncodeMetric;
use prometheus_client::encoding::MetricEncoder;
use prometheus_client::encoding::NoLabelSet;
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::TypedMetric;

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
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.partition_point(|bound| *bound < nanos);
        self.0.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.0.sum_nanos.fetch_add(nanos, Ordering::Relaxed);
    }
}

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

    fn exposition(histogram: &Histogram) -> String {
        let mut registry = Registry::default();
        registry.register("d", "d", histogram.clone());
        let mut text = String::new();
        text::encode(&mut text, &registry).unwrap();
        text
    }
}
