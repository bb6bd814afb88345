//! The life of the process: start, reload when asked, drain, end.

use std::fmt;
use std::future;
use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::process::Resource;
use rustix::process::Rlimit;
use rustix::process::getrlimit;
use rustix::process::setrlimit;
use tokio::runtime;
use tokio::runtime::Runtime;
use tokio::signal::unix::Signal;
use tokio::signal::unix::SignalKind;
use tokio::signal::unix::signal;
use tokio::time;
use tracing::info;
use tracing::warn;

use super::App;
use super::Drained;
use super::StartError;
use super::Surroundings;
use super::store;
use super::watch::Watch;
use crate::config::Settings;

/// Where the configuration of a process stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Origin {
    /// A file, which is watched.
    File(std::path::PathBuf),
    /// The command line, which cannot change.
    Flags,
}

/// The process, before there is anything to serve.
pub struct Process {
    runtime: Runtime,
    signals: Signals,
}

impl Process {
    /// From here on signals are held back until there is something to reload or to drain.
    pub fn begin() -> Result<Self, StartError> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(StartError::Thread)?;
        let signals = runtime.block_on(async { Signals::catch() }).map_err(StartError::Thread)?;
        Ok(Self { runtime, signals })
    }

    /// Serves until a signal ends it: the first one drains, the second one ends at once. `started` is called when
    /// requests are answered.
    pub fn serve(
        self,
        settings: Settings,
        surroundings: Surroundings,
        origin: &Origin,
        started: impl FnOnce(&App),
    ) -> Result<(), StartError> {
        let Self { runtime, mut signals } = self;
        // Held here too: the last words are said when everything else is gone.
        let _log = surroundings.log.clone();
        let ended = runtime.block_on(async {
            raise_descriptors();
            let summary = Summary::of(&settings);
            let mut app = App::start(settings, surroundings).await?;
            announce(&app, origin, &summary);
            started(&app);
            control(&mut app, origin, &mut signals).await;
            info!("draining: no new connections, requests under way are finished");
            tokio::select! {
                drained = app.drain() => say_farewell(drained),
                () = signals.end() => info!("ended at once"),
            }
            Ok(())
        });
        runtime.shutdown_background();
        ended
    }
}

/// Looks after the running gateway until it is to end.
async fn control(app: &mut App, origin: &Origin, signals: &mut Signals) {
    let mut watch = Watch::default();
    let mut tidy = time::interval(TIDY);
    loop {
        if matches!(origin, Origin::File(_)) {
            watch.follow(app.files());
        }
        tokio::select! {
            asked = signals.next() => match asked {
                Asked::End => return,
                Asked::Reload => reload(app, origin).await,
            },
            () = changed(&mut watch, origin) => reload(app, origin).await,
            _ = tidy.tick() => app.free_unused(),
        }
    }
}

/// How often retired configurations are looked through.
const TIDY: Duration = Duration::from_secs(1);

async fn reload(app: &mut App, origin: &Origin) {
    match origin {
        // What came of it is in the log already.
        Origin::File(_) => drop(app.reload().await),
        Origin::Flags => info!("nothing to reload: the configuration is the command line"),
    }
}

async fn changed(watch: &mut Watch, origin: &Origin) {
    match origin {
        Origin::File(_) => watch.changed().await,
        Origin::Flags => future::pending().await,
    }
}

/// The signals of a service.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

enum Asked {
    End,
    Reload,
}

impl Signals {
    fn catch() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.terminate.recv() => Asked::End,
            _ = self.interrupt.recv() => Asked::End,
            _ = self.hangup.recv() => Asked::Reload,
        }
    }

    async fn end(&mut self) {
        while !matches!(self.next().await, Asked::End) {}
    }
}

/// Allows as many descriptors as the system lets this process have: two for each request under way, and the default is
/// made for programs that use `select`.
fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        warn!(%error, "cannot raise the bound on descriptors");
    }
}

/// What is served, counted.
struct Summary {
    store: String,
    routes: usize,
    limits: usize,
    upstreams: Vec<String>,
}

impl Summary {
    fn of(settings: &Settings) -> Self {
        let upstreams = settings.upstreams.iter().map(|upstream| {
            let servers: Vec<&str> = upstream.servers.iter().map(|server| server.authority.as_str()).collect();
            match &servers[..] {
                [only] if upstream.name.ends_with(only) => upstream.name.to_string(),
                several => format!("{} ({})", upstream.name, several.join(", ")),
            }
        });
        Self {
            store: store::described(&settings.store),
            routes: settings.policy.routes.routes.len(),
            limits: settings.policy.limits.len(),
            upstreams: upstreams.collect(),
        }
    }
}

/// Says what is served, in a line each.
fn announce(app: &App, origin: &Origin, summary: &Summary) {
    let configuration = match origin {
        Origin::File(file) => file.as_path(),
        Origin::Flags => Path::new("the command line"),
    };
    info!(
        version = env!("CARGO_PKG_VERSION"),
        configuration = %configuration.display(),
        routes = summary.routes,
        limits = summary.limits,
        workers = app.workers.count(),
        "portcullis {} serves {}",
        env!("CARGO_PKG_VERSION"),
        configuration.display(),
    );
    info!("{}", summary.store);
    for upstream in &summary.upstreams {
        info!(upstream, "forwarding to {upstream}");
    }
    for address in app.addresses() {
        info!(%address, "listening on {address}");
    }
    if let Some(address) = app.admin_address() {
        info!(%address, "health and metrics on {address}");
    } else {
        info!("no admin address: no health, no metrics");
    }
}

fn say_farewell(drained: Drained) {
    match drained {
        Drained::Whole => info!("drained, every request was answered"),
        Drained::CutShort { connections } => {
            warn!(connections, "time to drain is over, connections that still stood were cut");
        }
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").finish_non_exhaustive()
    }
}
