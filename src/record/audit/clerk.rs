//! A thread that writes what others hand it, some at a time.

use std::io;
use std::sync::Arc;
use std::sync::mpsc;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::SyncSender;
use std::thread;

use prometheus_client::metrics::counter::Counter;
use tokio::sync::watch;
use tracing::error;
use tracing::info;

use crate::record::event::Event;

/// Where entries are written to.
pub(super) trait Book: Send + 'static {
    /// All of them, or none that anybody may rely on.
    fn write(&mut self, entries: &[Arc<Event>]) -> io::Result<()>;
}

/// The near end of the queue. The thread ends with the last holder, when everything is written.
#[derive(Debug)]
pub(super) struct Clerk {
    queue: SyncSender<Arc<Event>>,
    dropped: Counter,
    end: watch::Receiver<()>,
}

/// Ends when the thread has.
#[derive(Clone, Debug)]
pub(in crate::record) struct End(watch::Receiver<()>);

/// Some seconds of a flood; about 20 MB.
const QUEUE: usize = 32 * 1024;

/// How much is written at once.
const BATCH: usize = 1024;

impl Clerk {
    /// `place` names it in the log.
    pub(super) fn start(book: impl Book, dropped: Counter, place: &'static str) -> io::Result<Self> {
        let (queue, entries) = mpsc::sync_channel(QUEUE);
        let (alive, end) = watch::channel(());
        let lost = dropped.clone();
        thread::Builder::new().name(format!("audit {place}")).spawn(move || {
            write_out(book, &entries, &lost, place);
            drop(alive);
        })?;
        Ok(Self { queue, dropped, end })
    }

    pub(super) fn enter(&self, event: &Arc<Event>) {
        if self.queue.try_send(Arc::clone(event)).is_err() {
            self.dropped.inc();
        }
    }

    pub(super) fn end(&self) -> End {
        End(self.end.clone())
    }
}

impl End {
    pub(in crate::record) async fn reached(mut self) {
        while self.0.changed().await.is_ok() {}
    }
}

fn write_out(mut book: impl Book, entries: &Receiver<Arc<Event>>, lost: &Counter, place: &str) {
    let mut is_well = true;
    let mut batch = Vec::with_capacity(BATCH);
    while let Ok(first) = entries.recv() {
        batch.push(first);
        batch.extend(entries.try_iter().take(BATCH - 1));
        let written = book.write(&batch);
        match &written {
            Ok(()) if !is_well => info!("the audit trail is written to {place} again"),
            Err(error) if is_well => {
                error!(%error, "the audit trail cannot be written to {place}: entries are lost until it can");
            }
            _ => {}
        }
        is_well = written.is_ok();
        if !is_well {
            lost.inc_by(batch.len() as u64);
        }
        batch.clear();
    }
}
