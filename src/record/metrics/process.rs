//! Metrics of the process itself, under the names that all programs have for Prometheus.

use std::fmt;
use std::fs;
use std::time::Duration;
use std::time::SystemTime;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::EncodeMetric;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use rustix::param::page_size;
use rustix::process::Resource;
use rustix::process::getrlimit;
use rustix::time::ClockId;
use rustix::time::clock_gettime;

use super::names;
use super::names::MetricName;

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

/// Of all threads, in the program and in the system for it.
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
