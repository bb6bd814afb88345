//! Starting the gateway.

use std::sync::Arc;
use std::{io, panic};

use arc_swap::ArcSwap;
use arc_swap::access::Map;
use rustix::process::{Resource, getrlimit};
use tokio::sync::mpsc;
use tokio::task;
use tokio_util::sync::CancellationToken;

use super::event_sources::BanEvents;
use super::listeners::{BoundListener, Listeners};
use super::reload::InForce;
use super::sockets::{BoundSockets, bind_admin};
use super::source_tasks::SourceTasks;
use super::takeover::{InheritedState, LeavingPredecessor, Predecessor};
use super::workers::{Worker, Workers};
use super::{App, ProcessContext, store, workers};
use crate::admin::{AdminRules, AdminSources, AdminState, GatewayIdentity, LoadedConfig, ReloadRequest};
use crate::app::followed_lists::OpenLists;
use crate::app::gauges::gauge_reader;
use crate::app::listeners::AdminListener;
use crate::app::source_tasks::UpstreamTasks;
use crate::app::state::{LiveSnapshot, SnapshotParts};
use crate::app::store::{StoreLink, audit_mistake};
use crate::app::token_keys::OpenKeys;
use crate::app::{gauges, state};
use crate::config::{Diagnostic, NamedAddress, OutputFile, Settings};
use crate::fronts::{Complaints, Fronts};
use crate::gateway::{Gateway, HeldRequests, Snapshot};
use crate::listen::tls::TlsSetupError;
use crate::listen::{Connections, ListenAddress};
use crate::record::audit::{AuditSettings, AuditTrail, StoreRedis};
use crate::record::notify::{NotifySettings, WebhookChannels};
use crate::record::{Gauges, LogSettings, Sinks};
use crate::store::AnyStore;
use crate::store::snapshot::SnapshotWriter;
use crate::wire::crowdsec::ListSource;
use crate::words::clock;
use crate::words::clock::Clock;
use crate::words::units::counted;
use crate::{admin, listen};

/// How many operators may wait for a reload. Each waits at most a minute.
const MAX_RELOAD_REQUESTS: usize = 64;

/// A gateway that is ready to serve.
#[derive(Debug)]
pub(super) struct ReadyApp {
    app: App,
    bound: Vec<BoundListener>,
    bound_admin: Option<BoundSockets>,
}

impl ReadyApp {
    /// Serves when all counts of the process before are here.
    ///
    /// Not to be given up: counts that have arrived are in this process alone.
    pub(super) async fn serve(self, leaving: Option<&mut LeavingPredecessor>) -> Result<App, StartError> {
        let Self { mut app, bound, bound_admin } = self;
        if let Some(leaving) = leaving {
            leaving.all_arrived(&app.store).await.map_err(StartError::Takeover)?;
        }
        app.serve(bound, bound_admin);
        Ok(app)
    }
}

impl App {
    /// Binds every address, or takes the sockets that `inherited` has open already. Runs on the runtime that is to control
    /// the gateway.
    pub(super) async fn start(
        settings: Settings,
        context: ProcessContext,
        inherited: &mut InheritedState,
    ) -> Result<ReadyApp, StartError> {
        let ProcessContext { sinks, log, load } = context;
        let Settings {
            listen,
            admin,
            clients,
            store: store_settings,
            upstreams,
            policy,
            notify,
            followed,
            audit,
            log: log_settings,
            route_series,
            connections,
            requests,
            tracing,
            tokens,
            files,
            outputs,
            addresses: _,
            warnings,
            shown,
        } = settings;
        let (in_force, cores) = (InForce::of(shown, warnings), workers::count());
        let InheritedState { sockets, predecessor, leaving } = inherited;
        let bound = BoundListener::prepare_all(listen, cores, sockets)?;
        let bound_admin =
            admin.map(|admin| bind_admin(admin.address, sockets).map(|bound| (admin, bound))).transpose()?;

        sinks.gateway_name().set(gateway_name(log_settings.gateway.as_ref(), bound.iter().map(BoundListener::address)));

        // Counts that are taken over go on by the clock that they were counted by.
        let clock = predecessor.as_ref().and_then(Predecessor::clock).cloned().unwrap_or_else(Clock::system);
        let parts = SnapshotParts { policy, clients, upstreams, requests, tracing, tokens, route_series };
        let preparation = Preparation {
            store: store_settings.clone(),
            clock: clock.clone(),
            audit,
            outputs,
            notify,
            followed,
            parts,
            log_settings,
        };
        let PreparedParts { snapshot, store, redis, trail, channels, lists, keys, log_settings } =
            preparation.run(&sinks, predecessor).await?;
        let live = LiveSnapshot::new(snapshot);
        sinks.event_bus().set_trail(trail);
        tokio::spawn(gauges::run(live.shared(), Arc::clone(&store), sinks.clone()));
        store.bans().observe(Arc::new(BanEvents(Arc::clone(sinks.event_bus()))));
        let (stop_store_task, held_requests) = (CancellationToken::new(), HeldRequests::default());
        let snapshot_writer = Arc::new(SnapshotWriter::new(store_settings.memory.snapshot.clone()));
        let store_task = store::start_task(&store, &snapshot_writer, &stop_store_task).await;
        let connection_settings = Arc::new(ArcSwap::from_pointee(connections));
        let connections = Connections::within_descriptors(getrlimit(Resource::Nofile).current, cores);

        let gauges = gauge_reader(&live, &store, &connections, &held_requests, &lists, &snapshot_writer, &sinks);
        let token = bound_admin.as_ref().and_then(|(settings, _)| settings.token.clone());
        let (reloads, reload_requests) = mpsc::channel(MAX_RELOAD_REQUESTS);
        let sources = admin_sources(&live, &store, &sinks, gauges, in_force.loaded(&files), reloads);
        let control = AdminState::new(sources, AdminRules { token, on_failure: store_settings.on_failure });
        let gateway = CoreParts {
            live: live.shared(),
            store: Arc::clone(&store),
            held_requests,
            complaints: Complaints::default(),
            control: Arc::clone(&control),
            clock: clock.clone(),
            settings: Arc::clone(&connection_settings),
        };
        let workers = Workers::start(cores, move || gateway.worker()).map_err(StartError::Thread)?;

        let app = Self {
            upstream_tasks: UpstreamTasks::default(),
            listeners: Listeners::default(),
            admin: None,
            live,
            store_settings,
            store,
            clock,
            snapshot_writer,
            stop_store_task,
            store_task,
            sinks,
            channels,
            lists,
            source_tasks: SourceTasks::of(keys),
            redis,
            log,
            log_settings,
            workers,
            connection_settings,
            connections,
            control,
            reload_requests,
            load,
            files,
            in_force,
        };
        // The last step that may fail. From here on requests are decided in this process.
        if let Some(predecessor) = predecessor.take() {
            *leaving = Some(predecessor.take_counts(&app.store).await.map_err(StartError::Takeover)?);
        }
        Ok(ReadyApp { app, bound, bound_admin: bound_admin.map(|(_, bound)| bound) })
    }

    fn serve(&mut self, bound: Vec<BoundListener>, admin: Option<BoundSockets>) {
        self.upstream_tasks.follow(&self.live.load().upstreams);
        self.source_tasks.follow_lists(&self.lists.load());
        self.source_tasks.follow_keys();
        self.listeners.serve_all(bound, &self.workers, &self.connections);
        self.control.set_listeners(self.addresses(), self.listeners.name_expiries());
        tokio::spawn(admin::publish_records(Arc::clone(&self.control)));
        tokio::spawn(admin::watch_sign_ins(Arc::clone(&self.control)));
        self.admin = admin.map(|bound| AdminListener::serve(bound, &self.control));
    }
}

/// The name from the configuration, else the name of the machine and the first listener: `web1:8080`.
pub(super) fn gateway_name<'a>(
    configured: Option<&Arc<str>>,
    mut listeners: impl Iterator<Item = &'a ListenAddress>,
) -> String {
    /// Of the name of a machine, in characters.
    const MAX_MACHINE: usize = 64;
    if let Some(name) = configured {
        return name.to_string();
    }
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let is_of_name = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.' | '_');
    let machine: String = machine.chars().filter(is_of_name).take(MAX_MACHINE).collect();
    let machine = if machine.is_empty() { "gateway" } else { &machine };
    match listeners.next() {
        Some(ListenAddress::Ip(address)) => format!("{machine}:{}", address.port()),
        Some(ListenAddress::UnixSocket(path)) => format!("{machine}:{path}"),
        None => machine.to_owned(),
    }
}

/// The parts that each core builds its own gateway from.
#[derive(Clone)]
struct CoreParts {
    live: Arc<ArcSwap<Snapshot>>,
    store: Arc<AnyStore>,
    held_requests: HeldRequests,
    complaints: Complaints,
    control: Arc<AdminState>,
    clock: Clock,
    settings: Arc<ArcSwap<listen::ConnectionSettings>>,
}

impl CoreParts {
    fn worker(&self) -> Worker {
        let store = Arc::new(self.store.on_another_core());
        let gateway = Gateway::new(Arc::clone(&self.live), store, self.held_requests.clone(), self.clock.clone());
        let fronts = Fronts::new(gateway, self.complaints.clone(), Arc::clone(&self.control));
        Worker { fronts, settings: Arc::clone(&self.settings) }
    }
}

/// The sources of the answers of the admin listener.
fn admin_sources(
    live: &LiveSnapshot,
    store: &Arc<AnyStore>,
    sinks: &Sinks,
    gauges: Box<dyn Fn() -> Gauges + Send + Sync>,
    config: LoadedConfig,
    reload_requests: mpsc::Sender<ReloadRequest>,
) -> AdminSources {
    AdminSources {
        metrics: Arc::clone(sinks.metrics()),
        gauges,
        policy: Box::new(Map::new(live.shared(), |snapshot: &Snapshot| &snapshot.policy)),
        store: Arc::clone(store),
        event_bus: Arc::clone(sinks.event_bus()),
        config,
        reload_requests,
        identity: GatewayIdentity::new(Arc::clone(sinks.gateway_name()), clock::wall()),
        kept_requests: Arc::clone(sinks.kept_requests()),
        key_tables: Arc::clone(sinks.key_tables()),
        advisor: Arc::clone(sinks.advisor()),
        attacks: Arc::clone(sinks.attacks()),
    }
}

// Why the gateway did not start.

/// Why the gateway did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// Something that the configuration names cannot be used.
    #[error("{} in the configuration", counted(.0.len(), "mistake"))]
    Mistakes(Vec<Diagnostic>),
    #[error("cannot take over from the running gateway: {0}")]
    Takeover(io::Error),
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// Why the gateway cannot listen on an address as it is configured.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("cannot listen on {address}: {}", describe(.address, .source))]
    Bind { address: ListenAddress, source: io::Error },
    #[error("cannot change who may connect to {address}: {source}")]
    Mode { address: ListenAddress, source: io::Error },
    #[error("cannot speak TLS on {address}: {source}")]
    Tls { address: ListenAddress, source: TlsSetupError },
}

impl ListenError {
    /// As a mistake at the entry that names the address.
    pub(super) fn mistake(&self, addresses: &[NamedAddress]) -> Diagnostic {
        let (address, help) = match self {
            Self::Bind { address, .. } => (address, "make room there, or listen on another address"),
            Self::Mode { address, .. } => (address, "let the user of the gateway own the file, or leave `mode` out"),
            Self::Tls { address, .. } => (address, "name other files in `certificates` or `client_ca`"),
        };
        NamedAddress::unusable(addresses, address, &self.to_string()).help(help)
    }
}

/// The errors that an operator can do something about in plain words, any other as the system words it.
fn describe(address: &ListenAddress, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "the address is already in use".to_owned(),
        io::ErrorKind::NotFound if address.ip().is_none() => "its folder does not exist".to_owned(),
        io::ErrorKind::PermissionDenied if address.ip().is_none() => {
            "permission denied; the gateway makes a file there, so its user must be allowed to write to the folder"
                .to_owned()
        }
        io::ErrorKind::AddrNotAvailable => "no interface of this machine has that address".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied; ports below 1024 need a privilege".to_owned(),
        _ => error.to_string(),
    }
}

// The first half of a start: everything that reads and opens files, before anything is served.

/// The settings that are needed to prepare a start.
pub(super) struct Preparation {
    pub(super) store: crate::store::StoreSettings,
    pub(super) clock: Clock,
    pub(super) audit: AuditSettings,
    pub(super) outputs: Vec<OutputFile>,
    pub(super) notify: NotifySettings,
    pub(super) followed: Vec<ListSource>,
    pub(super) parts: SnapshotParts,
    pub(super) log_settings: LogSettings,
}

/// The parts that the rest of the start needs.
pub(super) struct PreparedParts {
    pub(super) snapshot: Snapshot,
    pub(super) store: Arc<AnyStore>,
    pub(super) redis: Option<Arc<dyn StoreRedis>>,
    pub(super) trail: AuditTrail,
    pub(super) channels: WebhookChannels,
    pub(super) lists: Arc<ArcSwap<OpenLists>>,
    pub(super) keys: OpenKeys,
    pub(super) log_settings: LogSettings,
}

impl Preparation {
    /// Runs on a thread that may block on files.
    pub(super) async fn run(
        self,
        sinks: &Sinks,
        predecessor: &mut Option<Predecessor>,
    ) -> Result<PreparedParts, StartError> {
        let (sinks, mut moved) = (sinks.clone(), predecessor.take());
        let building = task::spawn_blocking(move || {
            let prepared = self.build(&sinks, moved.as_mut());
            (prepared, moved)
        });
        let (prepared, returned) = building.await.unwrap_or_else(|error| panic::resume_unwind(error.into_panic()));
        *predecessor = returned;
        prepared
    }

    fn build(self, sinks: &Sinks, predecessor: Option<&mut Predecessor>) -> Result<PreparedParts, StartError> {
        let Self { store, clock, audit, outputs, notify, followed, parts, log_settings } = self;
        let store = Arc::new(store::build(&store, &clock, sinks.metrics(), predecessor));
        let redis = StoreLink::of(&store);
        let trail = open_trail(sinks, &audit, redis.as_ref(), &outputs).map_err(StartError::Mistakes)?;
        let channels = sinks.open_channels(&notify, &WebhookChannels::default(), redis.as_ref());
        let lists = OpenLists::default().reopen(followed, &clock);
        let keys = OpenKeys::default().reopen(parts.tokens.as_ref());
        let snapshot = state::build(parts, &log_settings, &channels, (&lists, &keys), None, sinks);
        let lists = Arc::new(ArcSwap::from_pointee(lists));
        Ok(PreparedParts { snapshot, store, redis, trail, channels, lists, keys, log_settings })
    }
}

/// Opens the places of the audit trail. A place that cannot be opened is a mistake at the line that names it.
pub(super) fn open_trail(
    sinks: &Sinks,
    settings: &AuditSettings,
    redis: Option<&Arc<dyn StoreRedis>>,
    outputs: &[OutputFile],
) -> Result<AuditTrail, Vec<Diagnostic>> {
    let opened = sinks.event_bus().open_trail(settings, redis, sinks.metrics());
    opened.map_err(|error| vec![audit_mistake(outputs, &error)])
}
