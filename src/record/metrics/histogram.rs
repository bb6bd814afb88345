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

/// The bucket of the shortest duration with so many leading zeros. Each bound is at least twice the one before, so the longest
/// is in the same bucket or in the next.
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
