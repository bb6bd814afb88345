//! Draining: requests under way are finished, then everything stops in order.

use std::time::Duration;

use tokio::task;
use tokio::time;
use tracing::info;

use super::App;
use crate::admin;
use crate::listen;

/// Why the process drains.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DrainReason {
    /// It was told to stop.
    Shutdown,
    /// Another process serves the same addresses from now on.
    Takeover,
}

/// How draining ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DrainOutcome {
    /// Every request was answered.
    Complete,
    /// Time was up while these connections were still open.
    CutShort { connections: usize },
}

impl App {
    /// Accepts nothing more: another process has the same sockets and goes on with them.
    pub(super) fn leave_sockets(&mut self) {
        self.control.begin_draining();
        self.listeners.leave();
        // The process that has taken over asks with the same keys from now on.
        self.source_tasks.stop();
        if let Some(admin) = self.admin.take() {
            admin.stopper.hand_over();
        }
    }

    /// Before a shutdown the gateway goes on for `server.timeouts.lame_duck`, not ready any more. Then it accepts nothing
    /// more and lets what is under way finish, for `server.timeouts.drain` at most.
    pub async fn drain(mut self, reason: DrainReason) -> DrainOutcome {
        self.control.begin_draining();
        let listen::Settings { drain: bound, lame_duck, .. } = **self.connection_settings.load();
        if reason == DrainReason::Shutdown {
            if !lame_duck.is_zero() {
                info!("not ready any more; requests are accepted for another {lame_duck:?}");
                time::sleep(lame_duck).await;
            }
            info!("draining: no new connections, requests under way are finished");
        }
        let draining = async {
            match reason {
                DrainReason::Shutdown => {
                    self.listeners.close().await;
                    self.connections.drain().await;
                }
                DrainReason::Takeover => self.connections.retire().await,
            }
        };
        let outcome = if time::timeout(bound, draining).await.is_ok() {
            DrainOutcome::Complete
        } else {
            let connections = self.connections.count();
            self.connections.cut();
            // Their requests are dropped where they were served, and give their slots back there.
            drop(time::timeout(CUT_TIMEOUT, self.connections.drain()).await);
            DrainOutcome::CutShort { connections }
        };
        if let Some(admin) = self.admin.take() {
            admin.stopper.close();
        }
        admin::tell_the_rest(&self.control).await;
        // A worker that ends may send its last settlements to the process that took over, and this thread carries them.
        let workers = self.workers;
        drop(task::spawn_blocking(move || workers.stop()).await);
        let event_bus = self.sinks.event_bus();
        tokio::join!(event_bus.close(FLUSH_TIMEOUT), self.sinks.span_exporters().close(FLUSH_TIMEOUT));
        self.stop_store_task.cancel();
        drop(time::timeout(STORE_TIMEOUT, self.store_task).await);
        self.sinks.flush(FLUSH_TIMEOUT);
        outcome
    }
}

/// How long connections that were cut may take to end.
const CUT_TIMEOUT: Duration = Duration::from_millis(200);

/// How long the exit waits for the snapshot of the store.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long the exit waits for readers of the request log and of events, and for the collector of spans.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
