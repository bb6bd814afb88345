//! Values that are read at the moment of a scrape.

use std::sync::Arc;
use std::time::{Duration, SystemTime};
use std::{fmt, fs};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use rustix::param::page_size;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use super::ShownRoutes;
use crate::record::metrics::names;
use crate::record::metrics::names::MetricName;
use crate::words::clock::Timestamp;

#[derive(Clone, Debug, Default)]
pub struct Gauges {
    pub connections: usize,
    /// Connections that were closed at once, because their listener does not take their peer. Only grows.
    pub rejected_connections: u64,
    /// Requests that are delayed or tarpitted.
    pub held: usize,
    /// Keys and addresses that are banned.
    pub bans: usize,
    pub sessions: usize,
    pub store: &'static str,
    pub store_up: bool,
    pub store_keys: usize,
    /// Which part of every limit this gateway grants while a shared store is away, from 0 to 1.
    pub store_part: Option<f64>,
    /// Upstream, server, and whether the server is healthy.
    pub servers: Vec<(Arc<str>, Arc<str>, bool)>,
    pub dropped_lines: u64,
    /// Which routes have series of their own.
    pub routes: Arc<ShownRoutes>,
    /// The lists that follow a source.
    pub lists: Vec<ListGauge>,
    /// Each level of the verdict, and whether it holds.
    pub verdict: Vec<(&'static str, bool)>,
    /// For each name of the certificates in use, the Unix time at which its certificate expires.
    pub certificates: Vec<(String, i64)>,
}

/// How a list that follows a source is.
#[derive(Clone, Debug)]
pub struct ListGauge {
    pub name: Arc<str>,
    /// The URL of the source.
    pub source: String,
    /// How many decisions it has from there.
    pub entries: usize,
    /// When the source answered last.
    pub answered: Option<Timestamp>,
    /// Why the last question was not answered.
    pub failure: Option<Arc<str>>,
}

impl ListGauge {
    /// Whether the source answers.
    pub fn is_up(&self) -> bool {
        self.answered.is_some() && self.failure.is_none()
    }
}

// Metrics of the process itself, under the names that all programs have for Prometheus.

/// Asks the system at each scrape. What the system does not say is left out.
#[derive(Debug)]
pub(super) struct ProcessCollector {
    /// Since 1970.
    started: Duration,
}

impl ProcessCollector {
    /// To be called when the process starts.
    pub(super) fn new() -> Self {
        Self { started: SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default() }
    }
}

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        put(&mut encoder, names::PROCESS_START_TIME, &ConstGauge::new(self.started.as_secs_f64()))?;
        put(&mut encoder, names::PROCESS_CPU, &ConstCounter::new(cpu_time().as_secs_f64()))?;
        if let Some(Memory { virtual_bytes, resident_bytes }) = memory() {
            put(&mut encoder, names::PROCESS_VIRTUAL_MEMORY, &ConstGauge::new(virtual_bytes))?;
            put(&mut encoder, names::PROCESS_RESIDENT_MEMORY, &ConstGauge::new(resident_bytes))?;
        }
        if let Some(open) = open_descriptors() {
            put(&mut encoder, names::PROCESS_OPEN_FDS, &ConstGauge::new(open))?;
        }
        if let Some(most) = getrlimit(Resource::Nofile).current {
            put(&mut encoder, names::PROCESS_MAX_FDS, &ConstGauge::new(most))?;
        }
        Ok(())
    }
}

fn put(encoder: &mut DescriptorEncoder<'_>, name: MetricName, metric: &impl EncodeMetric) -> Result<(), fmt::Error> {
    metric.encode(encoder.encode_descriptor(name.name, name.help, None, metric.metric_type())?)
}

/// The processor time of all threads, in user and system mode.
fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

struct Memory {
    virtual_bytes: u64,
    resident_bytes: u64,
}

/// The first two numbers of `statm` are pages.
fn memory() -> Option<Memory> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = text.split(' ').map_while(|number| number.parse::<u64>().ok());
    let page = u64::try_from(page_size()).ok()?;
    Some(Memory { virtual_bytes: pages.next()? * page, resident_bytes: pages.next()? * page })
}

/// Without the one that reads the folder.
fn open_descriptors() -> Option<u64> {
    let open = fs::read_dir("/proc/self/fd").ok()?.count();
    u64::try_from(open).ok()?.checked_sub(1)
}
