//! The life of the process: read the configuration, start, serve, drain, end.

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, panic};

use listenfd::ListenFd;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::Runtime;
use tokio::time::{MissedTickBehavior, interval};
use tokio::{runtime, task};
use tracing::{info, warn};

use super::announce::{Summary, announce};
use super::control_loop::control;
use super::start::ReadyApp;
use super::takeover::{ControlSocket, InheritedState, Predecessor, TakeoverOptions, socket_names};
use super::{App, DrainOutcome, StartError};
use crate::app::control_loop::Signals;
use crate::app::sockets;
use crate::config::{Diagnostic, Settings};
use crate::listen::ListenAddress;
use crate::record::Sinks;
use crate::record::log::OperationalLog;
use crate::words::units::counted;

/// The process before it serves.
pub struct Process {
    runtime: Runtime,
    signals: Signals,
    opened: ListenFd,
}

impl Process {
    /// From here on signals are held back until there is something to reload or to drain.
    pub fn begin() -> Result<Self, StartError> {
        take_small_pages();
        let opened = sockets::opened_descriptors();
        let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(StartError::Thread)?;
        let signals = runtime.block_on(async { Signals::catch() }).map_err(StartError::Thread)?;
        Ok(Self { runtime, signals, opened })
    }

    /// Reads the configuration; `None`: a signal ended the process meanwhile.
    pub fn read(mut self, load: &Arc<Load>) -> Option<(Self, Result<Settings, Vec<Diagnostic>>)> {
        let load = Arc::clone(load);
        let read = self.runtime.block_on(async {
            let reading = task::spawn_blocking(move || load());
            self.signals.unless_stopped(reading).await
        });
        let Some(read) = read else {
            self.runtime.shutdown_background();
            return None;
        };
        Some((self, read.unwrap_or_else(|error| panic::resume_unwind(error.into_panic()))))
    }

    /// Serves until a signal stops it or another process takes over, then drains. A signal while it drains ends it at
    /// once. Calls `on_started` when requests are answered.
    pub fn serve(
        self,
        settings: Settings,
        context: ProcessContext,
        origin: &Origin,
        takeover: &TakeoverOptions,
        on_started: impl FnOnce(&App),
    ) -> Result<(), StartError> {
        let Self { runtime, mut signals, opened } = self;
        // Kept here too: the last lines are logged when everything else is gone.
        let _log = context.log.clone();
        let result = runtime.block_on(async {
            raise_descriptor_limit();
            let summary = Summary::of(&settings);
            // Boxed, because all settings are in it.
            let starting = Box::pin(start(settings, context, opened, origin, takeover));
            let Some(started) = signals.unless_stopped(starting).await else {
                info!("ended before it served");
                return Ok(());
            };
            let Started { ready, socket_names, mut inherited } = started?;
            let mut app = ready.serve(inherited.leaving.as_mut()).await?;
            let control_socket = match &takeover.successor_command {
                Some(_) => ControlSocket::open(&socket_names),
                None => ControlSocket::none(),
            };
            let took_over = finish_takeover(inherited).await;
            announce(&app, origin, &summary);
            sockets::ready(took_over);
            tokio::spawn(sockets::run_watchdog(app.workers.probe()));
            on_started(&app);
            let successor_command = takeover.successor_command.as_ref();
            let reason = control(&mut app, origin, &mut signals, control_socket, successor_command).await;
            tokio::select! {
                outcome = app.drain(reason) => log_drain_outcome(outcome),
                () = signals.stop() => info!("ended at once"),
            }
            Ok(())
        });
        runtime.shutdown_background();
        result
    }
}

/// A gateway that is ready to serve, and what it began with.
struct Started {
    ready: ReadyApp,
    socket_names: Vec<String>,
    inherited: InheritedState,
}

async fn start(
    settings: Settings,
    context: ProcessContext,
    opened: ListenFd,
    origin: &Origin,
    takeover: &TakeoverOptions,
) -> Result<Started, StartError> {
    let socket_names = {
        let addresses: Vec<_> = settings.listen.iter().map(|listener| listener.address.clone()).collect();
        let origin = origin.clone();
        // Resolving the links of a path may block on its file system.
        task::spawn_blocking(move || socket_names(&origin, &addresses)).await.unwrap_or_default()
    };
    let mut inherited = inherit(opened, takeover, &socket_names).await?;
    let ready = App::start(settings, context, &mut inherited).await?;
    Ok(Started { ready, socket_names, inherited })
}

/// Takes over the sockets of the running gateway if asked to, else the sockets of the service manager.
async fn inherit(
    opened: ListenFd,
    takeover: &TakeoverOptions,
    socket_names: &[String],
) -> Result<InheritedState, StartError> {
    let activated = sockets::sockets(opened);
    if !takeover.takes_over {
        return Ok(InheritedState { sockets: activated, ..InheritedState::default() });
    }
    if let Some((predecessor, sockets)) = Predecessor::find(socket_names).await.map_err(StartError::Takeover)? {
        return Ok(InheritedState { sockets, predecessor: Some(predecessor), ..InheritedState::default() });
    }
    info!("no gateway of this configuration is running: there is nothing to take over");
    Ok(InheritedState { sockets: activated, ..InheritedState::default() })
}

/// Waits until the previous gateway drains; `false`: there was none.
async fn finish_takeover(inherited: InheritedState) -> bool {
    let InheritedState { sockets, leaving, .. } = inherited;
    let unused: Vec<&ListenAddress> = sockets.unused().collect();
    let Some(leaving) = leaving else {
        for address in unused {
            warn!(%address, "a socket on {address} was handed over, and the configuration does not listen there");
        }
        return false;
    };
    match leaving.wait_until_draining().await {
        Ok(()) => {
            sockets.remove_unused_files();
            info!("took over from the running gateway, which drains");
        }
        Err(error) => warn!(%error, "took over from the running gateway, which has not said that it drains: {error}"),
    }
    true
}

/// Makes the system hand out memory in its smallest pages. The allocator asks for huge ones: an idle connection would then take
/// memory for all the room of its buffers, and what a rush leaves behind would keep 2 MiB for each part still in use.
fn take_small_pages() {
    // Fails where the system has no huge pages.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// Allows as many descriptors as the system lets this process have. Each request under way needs two, and the default is
/// made for programs that use `select`.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        warn!(%error, "cannot raise the limit on file descriptors: {error}");
    }
}

fn log_drain_outcome(outcome: DrainOutcome) {
    match outcome {
        DrainOutcome::Complete => info!("drained, every request was answered"),
        DrainOutcome::CutShort { connections } => {
            let open = counted(connections, "open connection");
            warn!(connections, "drain timeout reached: the gateway closes {open}");
        }
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").finish_non_exhaustive()
    }
}

// The options of the command line for the running gateway.

/// How the configuration is read, at the start and for each reload.
pub type Load = dyn Fn() -> Result<Settings, Vec<Diagnostic>> + Send + Sync;

/// The parts that an [`App`] uses and does not create itself.
pub struct ProcessContext {
    pub sinks: Sinks,
    /// `None`: the caller of the gateway logs.
    pub log: Option<Arc<OperationalLog>>,
    pub load: Arc<Load>,
}

impl fmt::Debug for ProcessContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessContext").finish_non_exhaustive()
    }
}

// Where the configuration of a process comes from.

/// Where the configuration of a process comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Origin {
    /// A file, which is watched.
    File(PathBuf),
    /// The command line, which cannot change.
    Flags,
    /// A stream, which can be read only once.
    StandardInput,
}

// Gives memory back to the system after a burst of requests.

const INTERVAL: Duration = Duration::from_secs(1);

/// More than the allocator keeps in shared pages.
const LARGE: usize = 1 << 20;

/// Makes the allocator of this thread give back memory that has been free for a second. Never returns.
///
/// The allocator looks for such memory only when something large is allocated or freed. Requests are small, so that may
/// not happen for hours after a burst.
pub(super) async fn trim_allocator() {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // Never written to: it takes address space and no memory.
        drop(black_box(Vec::<u8>::with_capacity(LARGE)));
    }
}
