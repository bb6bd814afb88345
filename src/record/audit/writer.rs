//! A thread that writes queued events in batches.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use std::{io, thread};

use prometheus_client::metrics::counter::Counter;
use tokio::sync::watch;
use tracing::{error, info};

use crate::record::metrics::WriterHealth;
use crate::record::{Event, Metrics};
use crate::words::files;
use crate::words::files::LineFile;

/// Room for some seconds of a flood; about 20 MB.
const MAX_QUEUED: usize = 32 * 1024;

/// How many events are written at once.
const BATCH: usize = 1024;

/// How often a sink that failed is tried without an event.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// A file or a database that events are written to.
pub(super) trait AuditSink: Send + 'static {
    /// Writes all of them. On an error they all count as lost.
    fn write(&mut self, events: &[Arc<Event>]) -> io::Result<()>;

    /// Whether it takes events again, after an error; `None`: only the next event tells.
    fn retry(&mut self) -> Option<io::Result<()>> {
        None
    }

    /// It was never in force: the configuration was refused.
    fn withdraw(&self) {}
}

/// The sending end of the queue. When the last holder drops it, the thread writes the queue and ends.
#[derive(Debug)]
pub(super) struct AuditWriter {
    queue: SyncSender<Arc<Event>>,
    dropped: Counter,
    running: watch::Receiver<()>,
    /// Events go there.
    is_in_force: Arc<AtomicBool>,
}

/// Resolves when the thread has ended.
#[derive(Clone, Debug)]
pub(in crate::record) struct WriterFinished(watch::Receiver<()>);

impl AuditWriter {
    /// `sink_name` names the sink in the log and in the metrics.
    pub(super) fn start(mut sink: impl AuditSink, metrics: &Metrics, sink_name: &'static str) -> io::Result<Self> {
        let (dropped, health) = (metrics.audit_dropped(sink_name), metrics.writer("audit"));
        let (queue, events) = mpsc::sync_channel(MAX_QUEUED);
        let (alive, running) = watch::channel(());
        let (lost, is_in_force) = (dropped.clone(), Arc::<AtomicBool>::default());
        let was_in_force = Arc::clone(&is_in_force);
        thread::Builder::new().name(format!("audit {sink_name}")).spawn(move || {
            write_queued(&mut sink, &events, &lost, &health, sink_name);
            if !was_in_force.load(Ordering::Acquire) {
                sink.withdraw();
            }
            drop(alive);
        })?;
        Ok(Self { queue, dropped, running, is_in_force })
    }

    pub(super) fn put_in_force(&self) {
        self.is_in_force.store(true, Ordering::Release);
    }

    pub(super) fn append(&self, event: &Arc<Event>) {
        if self.queue.try_send(Arc::clone(event)).is_err() {
            self.dropped.inc();
        }
    }

    pub(super) fn finished(&self) -> WriterFinished {
        WriterFinished(self.running.clone())
    }
}

impl WriterFinished {
    pub(in crate::record) async fn wait(mut self) {
        while self.0.changed().await.is_ok() {}
    }
}

fn write_queued(
    sink: &mut impl AuditSink,
    events: &Receiver<Arc<Event>>,
    lost: &Counter,
    health: &WriterHealth,
    sink_name: &str,
) {
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        let first = if health.is_failing() {
            events.recv_timeout(RETRY_INTERVAL)
        } else {
            events.recv().map_err(|_| RecvTimeoutError::Disconnected)
        };
        let written = match first {
            Ok(first) => {
                batch.push(first);
                batch.extend(events.try_iter().take(BATCH - 1));
                sink.write(&batch)
            }
            Err(RecvTimeoutError::Timeout) => match sink.retry() {
                Some(written) => written,
                None => continue,
            },
            Err(RecvTimeoutError::Disconnected) => return,
        };
        match written {
            Ok(()) => {
                if health.worked() {
                    info!("the audit trail is written to {sink_name} again");
                }
            }
            Err(error) => {
                let why = files::describe(&error);
                let words = || format!("The audit trail cannot be written to its {sink_name}: {why}. Events are lost.");
                if health.failed(words) {
                    error!(%error, "the audit trail cannot be written to {sink_name}: events are lost until it can");
                }
                lost.inc_by(batch.len() as u64);
            }
        }
        batch.clear();
    }
}

// A file of JSON lines. When it is rotated away, a new one is begun at its path.

#[derive(Debug)]
pub(super) struct AuditFile {
    file: LineFile,
    lines: Vec<u8>,
}

impl AuditFile {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: LineFile::open(path)?, lines: Vec::new() })
    }
}

impl AuditSink for AuditFile {
    fn write(&mut self, events: &[Arc<Event>]) -> io::Result<()> {
        self.lines.clear();
        for event in events {
            self.lines.extend_from_slice(event.to_json().as_bytes());
            self.lines.push(b'\n');
        }
        self.file.write(&self.lines)
    }

    fn retry(&mut self) -> Option<io::Result<()>> {
        Some(self.file.write(&[]))
    }

    fn withdraw(&self) {
        self.file.withdraw();
    }
}
