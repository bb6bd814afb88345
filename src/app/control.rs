//! Looking after the running gateway: reloads, a process that takes over, the end.

use std::future;
use std::io;
use std::process;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task;
use tokio::task::JoinHandle;
use tokio::time;
use tracing::error;
use tracing::info;
use tracing::warn;

use super::App;
use super::Goodbye;
use super::reloads::Reloads;
use super::serve::Origin;
use super::service_manager;
use super::signals::Asked;
use super::signals::Signals;
use super::takeover;
use super::takeover::CommandLine;
use super::takeover::Hatch;
use super::takeover::Heir;
use super::takeover::Successor;
use super::watch::Watch;

/// Looks after the gateway until it is to drain.
pub(super) async fn control(
    app: &mut App,
    origin: &Origin,
    signals: &mut Signals,
    mut hatch: Hatch,
    next: Option<&CommandLine>,
) -> Goodbye {
    let mut watch = Watch::default();
    let mut tidy = time::interval(TIDY);
    let mut succession = Succession::default();
    let mut reloads = Reloads::default();
    let is_watched = matches!(origin, Origin::File(_));
    loop {
        if is_watched {
            watch.follow(app.files());
        }
        let is_handing = succession.handing.is_some();
        tokio::select! {
            asked = signals.next() => match asked {
                Asked::End => {
                    service_manager::stopping();
                    return Goodbye::ForGood;
                }
                Asked::Reload => reloads.ask(app, origin),
                Asked::Replace => succession.start(next),
            },
            heir = hatch.next(), if !is_handing => succession.hand_over(app, heir),
            successor = succession.outcome() => {
                if let Some(successor) = successor {
                    hatch.leave_names();
                    say_goodbye(app, successor);
                    return Goodbye::AnotherServes;
                }
            }
            next = reloads.next() => reloads.go_on(app, next),
            () = watch.changed(), if is_watched && !reloads.is_under_way() => reloads.changed(app),
            _ = tidy.tick() => app.free_unused(),
        }
    }
}

/// How often retired configurations are looked through.
const TIDY: Duration = Duration::from_secs(1);

/// The way to another process.
#[derive(Default)]
struct Succession {
    /// A process that was started here and has not ended: its number, and how it ends.
    started: Option<(u32, oneshot::Receiver<ExitStatus>)>,
    /// A process is being handed everything.
    handing: Option<JoinHandle<io::Result<Successor>>>,
}

impl Succession {
    fn start(&mut self, next: Option<&CommandLine>) {
        let Some(next) = next else {
            return info!("nothing takes over from this process");
        };
        if let Some((process, _)) = &self.started {
            return warn!("process {process} was started to take over and is still at it");
        }
        if !next.is_repeatable() {
            return error!(
                "the configuration came from standard input, which cannot be read again: start `portcullis run -c - \
                 --takeover` with it instead"
            );
        }
        if process::id() == 1 {
            // The end of process 1 is the end of its container, and of the new process with it.
            return error!("process 1 cannot be replaced: start a new container instead");
        }
        match next.start() {
            Ok(started) => {
                info!(process = started.0, "process {} is to take over", started.0);
                self.started = Some(started);
            }
            Err(error) => error!(%error, "cannot start the process that is to take over: {error}; this one goes on"),
        }
    }

    fn hand_over(&mut self, app: &App, heir: Heir) {
        match app.offer() {
            Ok(offer) => self.handing = Some(task::spawn_blocking(move || takeover::hand_over(heir, &offer))),
            Err(error) => error!(%error, "cannot hand over the listening sockets: {error}; this process goes on"),
        }
    }

    /// Who serves from now on. `None`: nobody, and this process goes on. May be dropped at any time and called again.
    async fn outcome(&mut self) -> Option<Successor> {
        let Self { started, handing } = self;
        let failed = tokio::select! {
            handed = awaited(handing.as_mut()) => {
                *handing = None;
                match handed.unwrap_or_else(|error| Err(io::Error::other(error))) {
                    Ok(successor) => return Some(successor),
                    Err(error) => format!("the new process was handed the sockets and does not serve: {error}"),
                }
            }
            ended = awaited(started.as_mut().map(|(_, ended)| ended)) => {
                let process = started.take().map_or(0, |(process, _)| process);
                let how = ended.map_or_else(|_| "nobody knows why".to_owned(), |status| status.to_string());
                format!("process {process} did not take over: {how}")
            }
        };
        error!("{failed}; this one goes on");
        None
    }
}

/// What comes of it; never, where there is nothing to wait for.
async fn awaited<T>(future: Option<&mut (impl Future<Output = T> + Unpin)>) -> T {
    match future {
        Some(future) => future.await,
        None => future::pending().await,
    }
}

fn say_goodbye(app: &mut App, successor: Successor) {
    if let Some(process) = successor.process {
        info!(process, "process {process} has taken over; draining: requests under way are finished");
        service_manager::succeeded_by(process);
    } else {
        info!("another process has taken over; draining: requests under way are finished");
    }
    app.leave();
    successor.dismiss();
}
