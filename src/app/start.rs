//! Starting the gateway.

use std::sync::Arc;

use arc_swap::ArcSwap;
use arc_swap::access::Map;
use rustix::process::Resource;
use rustix::process::getrlimit;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::App;
use super::ProcessContext;
use super::StartError;
use super::admin_listener::AdminListener;
use super::event_sources::BanEvents;
use super::gauges::gauge_reader;
use super::known_warnings::KnownWarnings;
use super::listeners::BoundListener;
use super::listeners::Listeners;
use super::live_snapshot::LiveSnapshot;
use super::prepare::Preparation;
use super::prepare::PreparedParts;
use super::record_ticks;
use super::reload::loaded_config;
use super::snapshot::SnapshotParts;
use super::sockets::BoundSockets;
use super::sockets::bind_admin;
use super::source_tasks::SourceTasks;
use super::store;
use super::takeover::InheritedState;
use super::takeover::LeavingPredecessor;
use super::takeover::Predecessor;
use super::upstream_tasks::UpstreamTasks;
use super::workers;
use super::workers::Worker;
use super::workers::Workers;
use crate::admin;
use crate::admin::AdminRules;
use crate::admin::AdminSources;
use crate::admin::AdminState;
use crate::admin::GatewayIdentity;
use crate::admin::LoadedConfig;
use crate::admin::ReloadRequest;
use crate::clock;
use crate::clock::Clock;
use crate::config::Settings;
use crate::fronts::Complaints;
use crate::fronts::Fronts;
use crate::gateway::Gateway;
use crate::gateway::HeldRequests;
use crate::gateway::Snapshot;
use crate::listen;
use crate::listen::Connections;
use crate::record::Gauges;
use crate::record::Sinks;
use crate::store::AnyStore;
use crate::store::snapshot::SnapshotWriter;

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
            warnings,
            shown,
        } = settings;
        let warnings = KnownWarnings::of(warnings, clock::wall());
        let cores = workers::count();
        let InheritedState { sockets, predecessor, leaving } = inherited;
        let bound = BoundListener::prepare_all(listen, cores, sockets)?;
        let bound_admin =
            admin.map(|admin| bind_admin(admin.address, sockets).map(|bound| (admin, bound))).transpose()?;

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
        let PreparedParts { snapshot, store, streams, trail, channels, lists, keys, log_settings } =
            preparation.run(&sinks, predecessor).await?;
        let live = LiveSnapshot::new(snapshot);
        sinks.event_bus().set_trail(trail);
        tokio::spawn(record_ticks::run(live.shared(), sinks.clone()));
        store.bans().observe(Arc::new(BanEvents(Arc::clone(sinks.event_bus()))));
        let stop_store_task = CancellationToken::new();
        let snapshot_writer = Arc::new(SnapshotWriter::new(store_settings.memory.snapshot.clone()));
        let store_task = store::start_task(&store, &snapshot_writer, &stop_store_task).await;
        let connection_settings = Arc::new(ArcSwap::from_pointee(connections));
        let connections = Connections::within_descriptors(getrlimit(Resource::Nofile).current, cores);
        let held_requests = HeldRequests::default();

        let gauges = gauge_reader(&live, &store, &connections, &held_requests, &lists, &sinks);
        let token = bound_admin.as_ref().and_then(|(settings, _)| settings.token.clone());
        let (reloads, reload_requests) = mpsc::channel(MAX_RELOAD_REQUESTS);
        let sources = admin_sources(&live, &store, &sinks, gauges, loaded_config(shown, &files, &warnings), reloads);
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
            streams,
            log,
            log_settings,
            workers,
            connection_settings,
            connections,
            control,
            reload_requests,
            load,
            files,
            warnings,
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
        tokio::spawn(admin::tell_others(Arc::clone(&self.control)));
        self.admin = admin.map(|bound| AdminListener::serve(bound, &self.control));
    }
}

/// What each core makes its own gateway of.
#[derive(Clone)]
struct CoreParts {
    live: Arc<ArcSwap<Snapshot>>,
    store: Arc<AnyStore>,
    held_requests: HeldRequests,
    complaints: Complaints,
    control: Arc<AdminState>,
    clock: Clock,
    settings: Arc<ArcSwap<listen::Settings>>,
}

impl CoreParts {
    fn worker(&self) -> Worker {
        let store = Arc::new(self.store.on_another_core());
        let gateway = Gateway::new(Arc::clone(&self.live), store, self.held_requests.clone(), self.clock.clone());
        let fronts = Fronts::new(gateway, self.complaints.clone(), Arc::clone(&self.control));
        Worker { fronts, settings: Arc::clone(&self.settings) }
    }
}

/// How many operators may wait for a reload. Each waits at most a minute.
const MAX_RELOAD_REQUESTS: usize = 64;

/// What the admin listener answers from.
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
        identity: GatewayIdentity::new(&rustix::system::uname().nodename().to_string_lossy(), clock::wall()),
        kept_requests: Arc::clone(sinks.kept_requests()),
        key_tables: Arc::clone(sinks.key_tables()),
        advisor: Arc::clone(sinks.advisor()),
    }
}
