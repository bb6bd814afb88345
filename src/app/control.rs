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
use tokio::time::Instant;
use tracing::debug;
use tracing::error;
use tracing::info;
use tracing::warn;

use super::App;
use super::Goodbye;
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
    hatch: Hatch,
    next: Option<&CommandLine>,
) -> Goodbye {
    let mut watch = Watch::default();
    let mut tidy = time::interval(TIDY);
    let mut succession = Succession::default();
    let mut half_renewed = HalfRenewed::default();
    loop {
        if matches!(origin, Origin::File(_)) {
            watch.follow(app.files());
        }
        let is_handing = succession.handing.is_some();
        tokio::select! {
            asked = signals.next() => match asked {
                Asked::End => {
                    service_manager::stopping();
                    info!("draining: no new connections, requests under way are finished");
                    return Goodbye::ForGood;
                }
                Asked::Reload => {
                    half_renewed.is_over();
                    reload(app, origin).await;
                }
                Asked::Replace => succession.start(next),
            },
            heir = hatch.next(), if !is_handing => succession.hand_over(app, heir),
            successor = succession.outcome() => {
                if let Some(successor) = successor {
                    say_goodbye(app, successor);
                    return Goodbye::AnotherServes;
                }
            }
            () = changed(&mut watch, origin) => half_renewed.read(app).await,
            () = half_renewed.lasts() => {
                half_renewed.is_over();
                reload(app, origin).await;
            }
            _ = tidy.tick() => app.free_unused(),
        }
    }
}

/// A certificate and its key are two files, and seldom change in one moment. While one of them is still the old one
/// they do not belong together, which is told only if it lasts.
#[derive(Default)]
struct HalfRenewed {
    since: Option<Instant>,
}

impl HalfRenewed {
    /// A file has changed.
    async fn read(&mut self, app: &mut App) {
        service_manager::reloading();
        // What comes of it is in the log already.
        if app.reload_when_paired().await.is_some() {
            self.is_over();
        } else {
            debug!("a key does not belong to its certificate, perhaps one of them is yet to be renewed");
            self.since.get_or_insert_with(Instant::now);
        }
        service_manager::ready(false);
    }

    /// Returns when it has lasted too long. May be dropped at any time and called again.
    async fn lasts(&self) {
        match self.since {
            Some(since) => time::sleep_until(since + RENEWING).await,
            None => future::pending().await,
        }
    }

    fn is_over(&mut self) {
        self.since = None;
    }
}

/// How long renewing a certificate and its key may take.
const RENEWING: Duration = Duration::from_secs(2);

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

async fn reload(app: &mut App, origin: &Origin) {
    match origin {
        Origin::File(_) => {
            service_manager::reloading();
            // What came of it is in the log already.
            drop(app.reload().await);
            service_manager::ready(false);
        }
        Origin::Flags => {
            service_manager::reloading();
            info!("nothing to reload: the configuration is the command line");
            service_manager::ready(false);
        }
    }
}

async fn changed(watch: &mut Watch, origin: &Origin) {
    match origin {
        Origin::File(_) => watch.changed().await,
        Origin::Flags => future::pending().await,
    }
}
