//! How values are read at the moment of a scrape.

use std::time::Duration;
use std::{fmt, fs, slice};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use rustix::param::page_size;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use crate::record::metrics::table::{Gauges, READ};

// Rows of the table, and how a scrape reads them.

/// A metric that is read at the moment of a scrape.
pub(super) struct GaugeRow {
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    labels: &'static [&'static str],
    read: fn(&Gauges) -> Vec<Sample>,
}

/// A value, and the values of the labels in the order of its row.
pub(super) struct Sample {
    labels: Vec<String>,
    value: Value,
}

#[derive(Clone, Copy)]
pub(super) enum Value {
    Count(u64),
    Moment(i64),
    Real(f64),
}

/// `read` returns no sample where there is nothing to say; the metric is left out then.
pub(super) const fn gauge(
    name: &'static str,
    help: &'static str,
    labels: &'static [&'static str],
    read: fn(&Gauges) -> Vec<Sample>,
) -> GaugeRow {
    GaugeRow { name, help, kind: MetricType::Gauge, labels, read }
}

/// The same of a value that only grows.
pub(super) const fn counter(
    name: &'static str,
    help: &'static str,
    labels: &'static [&'static str],
    read: fn(&Gauges) -> Vec<Sample>,
) -> GaugeRow {
    GaugeRow { name, help, kind: MetricType::Counter, labels, read }
}

/// The only sample of a metric.
pub(super) fn one(labels: &[&str], value: impl Into<Value>) -> Vec<Sample> {
    rows(slice::from_ref(&value.into()), |value| (labels.to_vec(), *value))
}

/// A sample for each of these.
pub(super) fn rows<'a, T>(all: &'a [T], sample: impl Fn(&'a T) -> (Vec<&'a str>, Value)) -> Vec<Sample> {
    let samples = all.iter().map(sample);
    samples.map(|(labels, value)| Sample { labels: labels.into_iter().map(str::to_owned).collect(), value }).collect()
}

/// The gauges of one scrape.
#[derive(Debug)]
pub(super) struct GaugeCollector(pub(super) Gauges);

impl Collector for GaugeCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for row in READ {
            let samples = (row.read)(&self.0);
            if samples.is_empty() {
                continue;
            }
            // A registry ends the help of its metrics like this, too.
            let help = format!("{}.", row.help);
            let mut metric = encoder.encode_descriptor(row.name, &help, None, row.kind)?;
            for Sample { labels, value } in samples {
                if labels.is_empty() {
                    value.encode(row.kind, metric)?;
                    break;
                }
                let labels: Vec<(&str, String)> = row.labels.iter().copied().zip(labels).collect();
                value.encode(row.kind, metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

impl Value {
    fn encode(self, kind: MetricType, encoder: MetricEncoder<'_>) -> fmt::Result {
        match (kind, self) {
            (MetricType::Counter, Self::Count(count)) => ConstCounter::new(count).encode(encoder),
            (MetricType::Counter, Self::Real(number)) => ConstCounter::new(number).encode(encoder),
            (_, Self::Count(count)) => ConstGauge::new(count).encode(encoder),
            (_, Self::Moment(seconds)) => ConstGauge::new(seconds).encode(encoder),
            (_, Self::Real(number)) => ConstGauge::new(number).encode(encoder),
        }
    }
}

impl From<bool> for Value {
    fn from(holds: bool) -> Self {
        Self::Count(holds.into())
    }
}

impl From<usize> for Value {
    fn from(count: usize) -> Self {
        Self::Count(count.try_into().unwrap_or(u64::MAX))
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<i64> for Value {
    fn from(seconds: i64) -> Self {
        Self::Moment(seconds)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

// What the system says of this process. The names of these metrics are those that all programs have for Prometheus.

/// The processor time of all threads, in user and system mode.
pub(super) fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

pub(super) struct Memory {
    pub(super) virtual_bytes: u64,
    pub(super) resident_bytes: u64,
}

/// The first two numbers of `statm` are pages.
pub(super) fn memory() -> Option<Memory> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = text.split(' ').map_while(|number| number.parse::<u64>().ok());
    let page = u64::try_from(page_size()).ok()?;
    Some(Memory { virtual_bytes: pages.next()? * page, resident_bytes: pages.next()? * page })
}

/// Without the one that reads the folder.
pub(super) fn open_descriptors() -> Option<u64> {
    let open = fs::read_dir("/proc/self/fd").ok()?.count();
    u64::try_from(open).ok()?.checked_sub(1)
}

pub(super) fn most_descriptors() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}
