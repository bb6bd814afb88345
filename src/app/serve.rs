//! The life of the process: start, reload when asked, drain, end.

use std::fmt;
use std::net::SocketAddr;
use std::panic;
use std::path::Path;
use std::sync::Arc;

use listenfd::ListenFd;
use rustix::process::Resource;
use rustix::process::Rlimit;
use rustix::process::getrlimit;
use rustix::process::setrlimit;
use tokio::runtime;
use tokio::runtime::Runtime;
use tokio::task;
use tracing::info;
use tracing::warn;

use super::App;
use super::Drained;
use super::Heritage;
use super::Load;
use super::StartError;
use super::Surroundings;
use super::control::control;
use super::service_manager;
use super::signals::Signals;
use super::store;
use super::takeover::CommandLine;
use super::takeover::Hatch;
use super::takeover::Predecessor;
use super::takeover::names;
use crate::config::Diagnostic;
use crate::config::Settings;

/// Where the configuration of a process stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Origin {
    /// A file, which is watched.
    File(std::path::PathBuf),
    /// The command line, which cannot change.
    Flags,
    /// A stream, which has been read.
    StandardInput,
}

/// Whether a process goes on where another one was, and whether another one may go on where it was.
#[derive(Clone, Debug, Default)]
pub struct Succession {
    /// It takes over from the running gateway of the same configuration, if there is one.
    pub takes_over: bool,
    /// How a process is started that takes over from this one. `None`: nobody may.
    pub next: Option<CommandLine>,
}

/// The process, before there is anything to serve.
pub struct Process {
    runtime: Runtime,
    signals: Signals,
    opened: ListenFd,
}

impl Process {
    /// From here on signals are held back until there is something to reload or to drain.
    pub fn begin() -> Result<Self, StartError> {
        let opened = service_manager::opened();
        let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(StartError::Thread)?;
        let signals = runtime.block_on(async { Signals::catch() }).map_err(StartError::Thread)?;
        Ok(Self { runtime, signals, opened })
    }

    /// Reads the configuration; `None`: a signal ended the process meanwhile.
    pub fn read(mut self, load: &Arc<Load>) -> Option<(Self, Result<Settings, Vec<Diagnostic>>)> {
        let load = Arc::clone(load);
        let read = self.runtime.block_on(async {
            let reading = task::spawn_blocking(move || load());
            self.signals.unless_ended(reading).await
        });
        let Some(read) = read else {
            self.runtime.shutdown_background();
            return None;
        };
        Some((self, read.unwrap_or_else(|error| panic::resume_unwind(error.into_panic()))))
    }

    /// Serves until a signal ends it, or another process takes over: it drains; a signal after that ends at once.
    /// `started` is called when requests are answered.
    pub fn serve(
        self,
        settings: Settings,
        surroundings: Surroundings,
        origin: &Origin,
        succession: &Succession,
        started: impl FnOnce(&App),
    ) -> Result<(), StartError> {
        let Self { runtime, mut signals, opened } = self;
        // Held here too: the last words are said when everything else is gone.
        let _log = surroundings.log.clone();
        let ended = runtime.block_on(async {
            raise_descriptors();
            let summary = Summary::of(&settings);
            let start = start(settings, surroundings, opened, origin, succession);
            let Some(begun) = signals.unless_ended(start).await else {
                info!("ended before it served");
                return Ok(());
            };
            let Started { mut app, names, heritage } = begun?;
            let hatch = if succession.next.is_some() { Hatch::open(&names) } else { Hatch::closed() };
            let took_over = relieve(heritage).await;
            announce(&app, origin, &summary);
            service_manager::ready(took_over);
            tokio::spawn(service_manager::reassure(app.workers.pulse()));
            started(&app);
            let goodbye = control(&mut app, origin, &mut signals, hatch, succession.next.as_ref()).await;
            tokio::select! {
                drained = app.drain(goodbye) => say_farewell(drained),
                () = signals.end() => info!("ended at once"),
            }
            Ok(())
        });
        runtime.shutdown_background();
        ended
    }
}

/// What serves, and what it began with.
struct Started {
    app: App,
    names: Vec<String>,
    heritage: Heritage,
}

async fn start(
    settings: Settings,
    surroundings: Surroundings,
    opened: ListenFd,
    origin: &Origin,
    succession: &Succession,
) -> Result<Started, StartError> {
    let names = {
        let addresses: Vec<_> = settings.listen.iter().map(|entrance| entrance.address).collect();
        let origin = origin.clone();
        // Where a file leads is asked of its file system.
        task::spawn_blocking(move || names(&origin, &addresses)).await.unwrap_or_default()
    };
    let mut heritage = inherit(opened, succession, &names).await?;
    let app = App::start(settings, surroundings, &mut heritage).await?;
    Ok(Started { app, names, heritage })
}

/// What the process goes on with: sockets of the running gateway, where it takes over, or else of the service manager.
async fn inherit(opened: ListenFd, succession: &Succession, names: &[String]) -> Result<Heritage, StartError> {
    let activated = service_manager::sockets(opened);
    if !succession.takes_over {
        return Ok(Heritage { sockets: activated, ..Heritage::default() });
    }
    if let Some((predecessor, sockets)) = Predecessor::find(names).await.map_err(StartError::Takeover)? {
        return Ok(Heritage { sockets, predecessor: Some(predecessor), ..Heritage::default() });
    }
    info!("no gateway of this configuration is running: there is nothing to take over");
    Ok(Heritage { sockets: activated, ..Heritage::default() })
}

/// Lets the gateway go that has served until now; `false`: there was none.
async fn relieve(heritage: Heritage) -> bool {
    let Heritage { sockets, leaving, .. } = heritage;
    let left: Vec<SocketAddr> = sockets.left().collect();
    let Some(leaving) = leaving else {
        for address in left {
            warn!(%address, "a socket on {address} was handed over, and the configuration does not listen there");
        }
        return false;
    };
    match leaving.relieve().await {
        Ok(()) => info!("took over from the running gateway, which drains"),
        Err(error) => warn!(%error, "took over from the running gateway, which has not said that it drains: {error}"),
    }
    true
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
        Origin::StandardInput => Path::new("standard input"),
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
