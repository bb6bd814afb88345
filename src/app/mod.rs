//! Settings become running parts; reloads, signals and draining.
//!
//! Everything is bound before anything is served, so that a start either succeeds whole or leaves nothing behind. The
//! data plane is one thread a core ([`workers`]); this thread has the rest: admin, health checks, files, signals.

pub mod build;
pub mod changes;
mod control;
pub mod listeners;
pub mod live;
pub mod reload;
mod reloads;
pub mod serve;
mod service_manager;
mod signals;
pub mod sockets;
pub mod store;
mod surplus;
pub mod takeover;
mod tidings;
pub mod watch;
pub mod workers;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::panic;
use std::sync::Arc;

use arc_swap::ArcSwap;
use arc_swap::access::Map;
use rustix::process::Resource;
use rustix::process::getrlimit;
use tokio::task;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::error;
use tracing::info;
use tracing::warn;

use self::build::Checks;
use self::listeners::Listeners;
use self::listeners::Opening;
use self::live::Live;
use self::sockets::Bound;
use self::sockets::Inherited;
use self::sockets::bind;
use self::sockets::describe;
use self::takeover::Leaving;
use self::takeover::Offer;
use self::takeover::Predecessor;
use self::tidings::Streams;
use self::workers::Workers;
use crate::admin;
use crate::admin::Control;
use crate::clock::Clock;
use crate::config::Diagnostic;
use crate::config::Output;
use crate::config::Settings;
use crate::config::Warnings;
use crate::files::Watched;
use crate::gateway::Gateway;
use crate::gateway::Holding;
use crate::gateway::Snapshot;
use crate::listen;
use crate::listen::Connections;
use crate::listen::Stack;
use crate::listen::Stopper;
use crate::listen::tls::NoTls;
use crate::record::Gauges;
use crate::record::LogSettings;
use crate::record::Sinks;
use crate::record::audit;
use crate::record::audit::Append;
use crate::record::audit::Trail;
use crate::record::log::OperationalLog;
use crate::record::notify;
use crate::record::notify::Desks;
use crate::store::AnyStore;
use crate::store::snapshot::SnapshotWriter;

/// How the configuration is read, at the start and for each reload.
pub type Load = dyn Fn() -> Result<Settings, Vec<Diagnostic>> + Send + Sync;

/// The running gateway, seen from the thread that controls it.
pub struct App {
    live: Live,
    store_settings: crate::store::Settings,
    store: Arc<AnyStore>,
    /// By which is decided.
    clock: Clock,
    /// What is known in memory is written with.
    snapshot_writer: Arc<SnapshotWriter>,
    /// Ends what looks after the store.
    watching: CancellationToken,
    tending: JoinHandle<()>,
    sinks: Sinks,
    /// The channels in force.
    desks: Desks,
    /// Where the audit trail may have a stream.
    streams: Option<Arc<dyn Append>>,
    log: Option<Arc<OperationalLog>>,
    log_settings: LogSettings,
    workers: Workers,
    listeners: Listeners,
    connection_settings: Arc<ArcSwap<listen::Settings>>,
    connections: Connections,
    admin: Option<Admin>,
    control: Arc<Control>,
    checks: Checks,
    load: Arc<Load>,
    files: Vec<Watched>,
    /// What was warned of last.
    warnings: Warnings,
}

/// What of the process an [`App`] is given rather than makes.
pub struct Surroundings {
    pub sinks: Sinks,
    /// `None`: whoever started the gateway logs.
    pub log: Option<Arc<OperationalLog>>,
    pub load: Arc<Load>,
}

/// What of the process before it an [`App`] goes on with.
#[derive(Debug, Default)]
pub struct Heritage {
    pub sockets: Inherited,
    /// The gateway that serves until this one does.
    pub predecessor: Option<Predecessor>,
    /// The same from when this one serves.
    leaving: Option<Leaving>,
}

/// Why the gateway did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot listen on {address}: {}", describe(.source))]
    Bind { address: SocketAddr, source: io::Error },
    #[error("cannot speak TLS on {address}: {source}")]
    Tls { address: SocketAddr, source: NoTls },
    /// Something that the configuration names cannot be used.
    #[error("{} mistakes in the configuration", .0.len())]
    Mistakes(Vec<Diagnostic>),
    #[error("cannot take over from the running gateway: {0}")]
    Takeover(io::Error),
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// The admin listener.
struct Admin {
    configured: SocketAddr,
    /// As bound: with the port that was free, where the configuration says 0.
    address: SocketAddr,
    stopper: Stopper,
    /// Kept to be handed to a process that takes over.
    sockets: Vec<TcpListener>,
}

impl App {
    /// Binds every address, or takes what is open already out of `heritage`, then serves. Runs on the runtime that is
    /// to control the gateway.
    pub async fn start(
        settings: Settings,
        surroundings: Surroundings,
        heritage: &mut Heritage,
    ) -> Result<Self, StartError> {
        let Surroundings { sinks, log, load } = surroundings;
        let Settings {
            listen,
            admin,
            clients,
            store,
            upstreams,
            policy,
            notify,
            audit,
            log: log_settings,
            connections,
            requests,
            files,
            outputs,
            warnings,
        } = settings;
        tell(&warnings);
        let cores = workers::count();
        let Heritage { sockets, predecessor, leaving } = heritage;
        let bound = Opening::prepare_all(listen, cores, sockets)?;
        let bound_admin =
            admin.map(|admin| bind(admin.address, Stack::Dual, 1, sockets).map(|bound| (admin, bound))).transpose()?;

        // Counts go on by the clock that they were counted by.
        let carried_on = predecessor.as_ref().and_then(Predecessor::clock).cloned();
        let clock = carried_on.unwrap_or_else(Clock::system);
        let store_settings = store;
        let parts = build::Parts { policy, clients, upstreams, requests };
        let plan =
            Plan { store: store_settings.clone(), clock: clock.clone(), audit, outputs, notify, parts, log_settings };
        let Built { snapshot, store, streams, trail, desks, log_settings } =
            plan.carry_out(&sinks, predecessor).await?;
        let live = Live::new(snapshot);
        sinks.herald().follow(trail);
        store.bans().observe(Arc::new(tidings::Bans(Arc::clone(sinks.herald()))));
        let watching = CancellationToken::new();
        let snapshot_writer = Arc::new(SnapshotWriter::new(store_settings.memory.snapshot.clone()));
        let tending = store::meet(&store, &snapshot_writer, &watching).await;
        let connection_settings = Arc::new(ArcSwap::from_pointee(connections));
        let connections = Connections::within_descriptors(getrlimit(Resource::Nofile).current, cores);
        let holding = Holding::default();

        let control = {
            let gauges = {
                let (live, store, connections, holding, sinks) =
                    (live.shared(), Arc::clone(&store), connections.clone(), holding.clone(), sinks.clone());
                move || build::gauges(&live.load(), &store, &connections, &holding, &sinks)
            };
            let token = bound_admin.as_ref().and_then(|(settings, _)| settings.token.clone());
            let rules = admin::Rules { token, on_failure: store_settings.on_failure };
            Control::new(sources(&live, &store, &sinks, Box::new(gauges)), rules)
        };
        let workers = Workers::start(cores, {
            let (live, store, clock) = (live.shared(), Arc::clone(&store), clock.clone());
            let settings = Arc::clone(&connection_settings);
            move || workers::Worker {
                gateway: Gateway::new(
                    Arc::clone(&live),
                    Arc::new(store.on_another_core()),
                    holding.clone(),
                    clock.clone(),
                ),
                settings: Arc::clone(&settings),
            }
        })
        .map_err(StartError::Thread)?;

        let mut app = Self {
            checks: Checks::default(),
            listeners: Listeners::default(),
            admin: None,
            live,
            store_settings,
            store,
            clock,
            snapshot_writer,
            watching,
            tending,
            sinks,
            desks,
            streams,
            log,
            log_settings,
            workers,
            connection_settings,
            connections,
            control,
            load,
            files,
            warnings,
        };
        // The last that may fail, and from here on whoever waits for a decision waits for this process.
        if let Some(predecessor) = predecessor.take() {
            *leaving = Some(predecessor.hand_on(&app.store).await.map_err(StartError::Takeover)?);
        }
        app.checks.follow(&app.live.load().upstreams);
        app.listeners.serve_all(bound, &app.workers, &app.connections);
        app.admin = bound_admin.map(|(_, bound)| Admin::serve(bound, &app.control));
        Ok(app)
    }

    /// Where requests are accepted, in the order of the configuration; real ports where it says 0.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.addresses()
    }

    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(|admin| admin.address)
    }

    /// Every file the configuration was read from.
    pub fn files(&self) -> &[Watched] {
        &self.files
    }

    /// What another process gets that takes over.
    fn offer(&self) -> io::Result<Offer> {
        let mut sockets = self.listeners.offer()?;
        if let Some(admin) = &self.admin {
            let same = admin.sockets.iter().map(TcpListener::try_clone).collect::<io::Result<_>>()?;
            sockets.push((admin.configured, same));
        }
        let store = match &*self.store {
            AnyStore::Memory(memory) => Some((Arc::clone(memory), Arc::clone(&self.snapshot_writer))),
            AnyStore::Shared(_) => None,
        };
        Ok(Offer { sockets, store, clock: self.clock.clone() })
    }

    /// Accepts nothing more: another process has the same sockets and goes on with them.
    fn leave(&mut self) {
        self.control.begin_draining();
        self.listeners.leave();
        if let Some(admin) = self.admin.take() {
            admin.stopper.leave();
        }
    }

    /// Goes on for as long as `server.timeouts.lame_duck` says, not ready any more, unless another process does. Then
    /// accepts nothing more and lets what is under way finish, for as long as `server.timeouts.drain` allows.
    pub async fn drain(mut self, goodbye: Goodbye) -> Drained {
        self.control.begin_draining();
        let listen::Settings { drain: bound, lame_duck, .. } = **self.connection_settings.load();
        if goodbye == Goodbye::ForGood {
            if !lame_duck.is_zero() {
                info!("not ready any more; requests are accepted for another {lame_duck:?}");
                tokio::time::sleep(lame_duck).await;
            }
            info!("draining: no new connections, requests under way are finished");
        }
        let draining = async {
            match goodbye {
                Goodbye::ForGood => {
                    self.listeners.close().await;
                    self.connections.drain().await;
                }
                Goodbye::AnotherServes => self.connections.retire().await,
            }
        };
        let drained = if tokio::time::timeout(bound, draining).await.is_ok() {
            Drained::Whole
        } else {
            let connections = self.connections.count();
            self.connections.cut();
            // Their requests are dropped where they were served, and give back what they held.
            drop(tokio::time::timeout(CUT, self.connections.drain()).await);
            Drained::CutShort { connections }
        };
        if let Some(admin) = self.admin.take() {
            admin.stopper.close();
        }
        // The last words of the cores may be for the process that has taken over, and are carried by this thread.
        let workers = self.workers;
        drop(task::spawn_blocking(move || workers.stop()).await);
        self.sinks.herald().close(FLUSH).await;
        self.watching.cancel();
        drop(tokio::time::timeout(LAST_WORDS, self.tending).await);
        self.sinks.flush(FLUSH);
        drained
    }
}

/// What those find who come again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Goodbye {
    /// Nobody, as far as this process knows.
    ForGood,
    /// Another process, on the same addresses.
    AnotherServes,
}

/// How draining ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Drained {
    /// Every request was answered.
    Whole,
    /// Time was up while these connections still stood.
    CutShort { connections: usize },
}

/// What is made of settings when the process starts, before it serves.
struct Plan {
    store: crate::store::Settings,
    clock: Clock,
    audit: audit::Settings,
    outputs: Vec<Output>,
    notify: notify::Settings,
    parts: build::Parts,
    log_settings: LogSettings,
}

struct Built {
    snapshot: Snapshot,
    store: Arc<AnyStore>,
    streams: Option<Arc<dyn Append>>,
    trail: Trail,
    desks: Desks,
    log_settings: LogSettings,
}

impl Plan {
    /// All that reads and opens files, on a thread that may wait for them.
    async fn carry_out(self, sinks: &Sinks, predecessor: &mut Option<Predecessor>) -> Result<Built, StartError> {
        let (sinks, of_before) = (sinks.clone(), predecessor.take());
        let building = task::spawn_blocking(move || {
            let mut of_before = of_before;
            (self.build(&sinks, of_before.as_mut()), of_before)
        });
        let (built, of_before) = building.await.unwrap_or_else(|error| panic::resume_unwind(error.into_panic()));
        *predecessor = of_before;
        built
    }

    fn build(self, sinks: &Sinks, predecessor: Option<&mut Predecessor>) -> Result<Built, StartError> {
        let Self { store, clock, audit, outputs, notify, parts, log_settings } = self;
        let store = Arc::new(store::build(&store, &clock, sinks.metrics(), predecessor));
        let streams = Streams::of(&store);
        let trail = open_trail(sinks, &audit, streams.as_ref(), &outputs)?;
        let desks = sinks.herald().desks(&notify, &Desks::default(), sinks.metrics());
        let snapshot = build::snapshot(parts, &log_settings, &desks, None, sinks);
        Ok(Built { snapshot, store, streams, trail, desks, log_settings })
    }
}

/// What the admin listener answers from.
fn sources(
    live: &Live,
    store: &Arc<AnyStore>,
    sinks: &Sinks,
    gauges: Box<dyn Fn() -> Gauges + Send + Sync>,
) -> admin::Sources {
    admin::Sources {
        metrics: Arc::clone(sinks.metrics()),
        gauges,
        policy: Box::new(Map::new(live.shared(), |snapshot: &Snapshot| &snapshot.policy)),
        store: Arc::clone(store),
        herald: Arc::clone(sinks.herald()),
    }
}

/// Opens the places of the audit trail. One that cannot be opened is a mistake where it is named.
fn open_trail(
    sinks: &Sinks,
    settings: &audit::Settings,
    streams: Option<&Arc<dyn Append>>,
    outputs: &[Output],
) -> Result<Trail, StartError> {
    sinks
        .herald()
        .open(settings, streams, sinks.metrics())
        .map_err(|error| StartError::Mistakes(vec![Output::unwritable(outputs, &error.path, &error.to_string())]))
}

/// Says what is right as it is written and will not be what was meant.
fn tell(warnings: &Warnings) {
    for Diagnostic { file, line, column, message, help, .. } in &warnings.found {
        let file = file.display();
        let help = help.as_deref();
        warn!(%file, line, column, help, "{file}:{line}:{column}: {message}");
    }
}

/// How long connections that were cut may take to end.
const CUT: std::time::Duration = std::time::Duration::from_millis(200);

/// How long the exit waits for the snapshot of the store.
const LAST_WORDS: std::time::Duration = std::time::Duration::from_secs(2);

/// How long the exit waits for whoever reads the request log.
const FLUSH: std::time::Duration = std::time::Duration::from_secs(1);

impl Admin {
    fn serve(bound: Bound, control: &Arc<Control>) -> Self {
        let Bound { configured, address, sockets } = bound;
        let stopper = Stopper::default();
        for socket in &sockets {
            match socket.try_clone() {
                Ok(socket) => drop(tokio::spawn(admin::serve(socket, Arc::clone(control), stopper.stop()))),
                Err(error) => error!(%address, %error, "the admin listener does not accept connections: {error}"),
            }
        }
        Self { configured, address, stopper, sockets }
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("listeners", &self.listeners).field("files", &self.files).finish_non_exhaustive()
    }
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings").finish_non_exhaustive()
    }
}
