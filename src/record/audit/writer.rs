//! A thread that writes queued events in batches.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, mpsc};
use std::{io, thread};

use prometheus_client::metrics::counter::Counter;
use tokio::sync::watch;
use tracing::{error, info};

use crate::record::Event;
use crate::words::files::LineFile;

/// Room for some seconds of a flood; about 20 MB.
const MAX_QUEUED: usize = 32 * 1024;

/// How many events are written at once.
const BATCH: usize = 1024;

/// A file or a database that events are written to.
pub(super) trait AuditSink: Send + 'static {
    /// Writes all of them. On an error they all count as lost.
    fn write(&mut self, events: &[Arc<Event>]) -> io::Result<()>;
}

/// The sending end of the queue. When the last holder drops it, the thread writes the queue and ends.
#[derive(Debug)]
pub(super) struct AuditWriter {
    queue: SyncSender<Arc<Event>>,
    dropped: Counter,
    running: watch::Receiver<()>,
}

/// Resolves when the thread has ended.
#[derive(Clone, Debug)]
pub(in crate::record) struct WriterFinished(watch::Receiver<()>);

impl AuditWriter {
    /// `sink_name` names the sink in the log.
    pub(super) fn start(sink: impl AuditSink, dropped: Counter, sink_name: &'static str) -> io::Result<Self> {
        let (queue, events) = mpsc::sync_channel(MAX_QUEUED);
        let (alive, running) = watch::channel(());
        let lost = dropped.clone();
        thread::Builder::new().name(format!("audit {sink_name}")).spawn(move || {
            write_queued(sink, &events, &lost, sink_name);
            drop(alive);
        })?;
        Ok(Self { queue, dropped, running })
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

fn write_queued(mut sink: impl AuditSink, events: &Receiver<Arc<Event>>, lost: &Counter, sink_name: &str) {
    let mut is_healthy = true;
    let mut batch = Vec::with_capacity(BATCH);
    while let Ok(first) = events.recv() {
        batch.push(first);
        batch.extend(events.try_iter().take(BATCH - 1));
        let written = sink.write(&batch);
        match &written {
            Ok(()) if !is_healthy => info!("the audit trail is written to {sink_name} again"),
            Err(error) if is_healthy => {
                error!(%error, "the audit trail cannot be written to {sink_name}: events are lost until it can");
            }
            _ => {}
        }
        is_healthy = written.is_ok();
        if !is_healthy {
            lost.inc_by(batch.len() as u64);
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
}
