//! The control loop of the running gateway: signals, reloads and takeovers, until it is to drain.

use std::time::Duration;

use tokio::time;
use tracing::info;

use super::App;
use super::DrainReason;
use super::Origin;
use super::file_watcher::FileWatcher;
use super::reload::ReloadQueue;
use super::service_manager;
use super::signals::SignalAction;
use super::signals::Signals;
use super::takeover::CommandLine;
use super::takeover::ControlSocket;
use super::takeover::OutgoingTakeover;
use super::takeover::Successor;

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
                    service_manager::stopping();
                    return DrainReason::Shutdown;
                }
                SignalAction::Reload => reloads.request(app, origin),
                SignalAction::Replace => takeover.start(successor_command),
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

/// How often the gateway looks for retired configurations to free.
const FREE_INTERVAL: Duration = Duration::from_secs(1);

/// Stops accepting, and tells the successor so.
fn leave_to(app: &mut App, successor: Successor) {
    if let Some(process) = successor.process {
        info!(process, "process {process} has taken over; draining: requests under way are finished");
        service_manager::taken_over_by(process);
    } else {
        info!("another process has taken over; draining: requests under way are finished");
    }
    app.leave_sockets();
    successor.say_draining();
}
