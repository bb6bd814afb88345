//! The control loop of the running gateway: signals, reloads and takeovers, until it is to drain.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::{task, time};
use tracing::info;

use super::reload::ReloadQueue;
use super::takeover::{CommandLine, ControlSocket, OutgoingTakeover, Successor};
use super::{App, Origin};
use crate::app::sockets;
use crate::app::source_tasks::FileWatcher;
use crate::{admin, listen};

/// How often the gateway looks for retired configurations to free.
const FREE_INTERVAL: Duration = Duration::from_secs(1);

/// Controls the gateway until it is to drain.
pub(super) async fn control(
    app: &mut App,
    origin: &Origin,
    signals: &mut Signals,
    mut control_socket: ControlSocket,
    successor_command: Option<&CommandLine>,
) -> DrainReason {
    let mut watcher = FileWatcher::default();
    let mut free_ticks = time::interval(FREE_INTERVAL);
    let mut takeover = OutgoingTakeover::default();
    let mut reloads = ReloadQueue::default();
    let is_watched = matches!(origin, Origin::File(_));
    loop {
        if is_watched {
            watcher.follow(app.files());
        }
        let is_handing_over = takeover.is_handing_over();
        tokio::select! {
            action = signals.next() => match action {
                SignalAction::Stop => {
                    sockets::stopping();
                    return DrainReason::Shutdown;
                }
                SignalAction::Reload => reloads.request(app, origin),
                SignalAction::Replace => takeover.start(successor_command),
                SignalAction::ReopenLog => app.reopen_log(),
            },
            request = control_socket.next(), if !is_handing_over => takeover.hand_over(request, app.handover_state()),
            successor = takeover.successor() => {
                if let Some(successor) = successor {
                    control_socket.leave_names();
                    leave_to(app, successor);
                    return DrainReason::Takeover;
                }
            }
            Some(request) = app.reload_requests.recv() => reloads.request_and_reply(app, origin, request),
            step = reloads.next() => reloads.handle(app, step),
            () = watcher.changed(), if is_watched && !reloads.is_running() => reloads.file_changed(app),
            _ = free_ticks.tick() => app.free_unused(),
        }
    }
}

/// Stops accepting, and tells the successor so.
fn leave_to(app: &mut App, successor: Successor) {
    if let Some(process) = successor.process {
        info!(process, "process {process} has taken over; draining: requests under way are finished");
        sockets::taken_over_by(process);
    } else {
        info!("another process has taken over; draining: requests under way are finished");
    }
    app.leave_sockets();
    successor.say_draining();
}

// The signals of a service.

/// Signals that are caught. A signal that came before the first [`Self::next`] is not lost.
#[derive(Debug)]
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    replace: Signal,
    reopen: Signal,
}

/// The action that a signal asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SignalAction {
    Stop,
    Reload,
    /// Start a process that takes over.
    Replace,
    ReopenLog,
}

impl Signals {
    pub(super) fn catch() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            replace: signal(SignalKind::user_defined2())?,
            reopen: signal(SignalKind::user_defined1())?,
        })
    }

    pub(super) async fn next(&mut self) -> SignalAction {
        tokio::select! {
            _ = self.terminate.recv() => SignalAction::Stop,
            _ = self.interrupt.recv() => SignalAction::Stop,
            _ = self.hangup.recv() => SignalAction::Reload,
            _ = self.replace.recv() => SignalAction::Replace,
            _ = self.reopen.recv() => SignalAction::ReopenLog,
        }
    }

    /// The output of `work`; `None`: a signal to stop came first. Other signals are kept for [`Self::next`].
    pub(super) async fn unless_stopped<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            output = work => Some(output),
            _ = self.terminate.recv() => None,
            _ = self.interrupt.recv() => None,
        }
    }

    /// Returns at the next signal to stop.
    pub(super) async fn stop(&mut self) {
        while !matches!(self.next().await, SignalAction::Stop) {}
    }
}

// Draining: requests under way are finished, then everything stops in order.

/// How long connections that were cut may take to end.
const CUT_TIMEOUT: Duration = Duration::from_millis(200);

/// How long the exit waits for the snapshot of the store.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long the exit waits for readers of the request log and of events, and for the collector of spans.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Why the process drains.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DrainReason {
    /// A signal or the service manager asked it to stop.
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
    /// Opens the file of the log anew, on a thread that may block.
    fn reopen_log(&self) {
        let file = Arc::clone(self.sinks.log_file());
        task::spawn_blocking(move || {
            if file.reopen() {
                info!("SIGUSR1: the file of the log was opened anew");
            } else {
                info!("SIGUSR1: nothing to open anew, the log goes to no file");
            }
        });
    }

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

    /// Before a shutdown the gateway serves for `server.timeouts.lame_duck` while `/readyz` fails. Then it accepts no
    /// more connections, and waits for `server.timeouts.drain` at most until all requests have ended.
    pub async fn drain(mut self, reason: DrainReason) -> DrainOutcome {
        self.control.begin_draining();
        let listen::ConnectionSettings { drain: bound, lame_duck, .. } = **self.connection_settings.load();
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
        admin::publish_last_records(&self.control).await;
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
