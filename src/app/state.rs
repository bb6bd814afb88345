//! The running gateway.

use std::net::SocketAddr;
use std::sync::Arc;
use std::{fmt, io};

use arc_swap::ArcSwap;
use tokio::sync::mpsc;
use tokio::task;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::followed_lists::OpenLists;
use super::listeners::Listeners;
use super::source_tasks::SourceTasks;
use super::takeover::HandoverState;
use super::workers::Workers;
use crate::admin::{AdminState, ReloadRequest};
use crate::app::listeners::AdminListener;
use crate::app::process::Load;
use crate::app::reload::InForce;
use crate::app::source_tasks::UpstreamTasks;
use crate::app::token_keys::OpenKeys;
use crate::gateway::{Snapshot, TokenSettings};
use crate::listen::{Connections, ListenAddress};
use crate::record::audit::StoreRedis;
use crate::record::log::OperationalLog;
use crate::record::notify::WebhookChannels;
use crate::record::spans::TracingSettings;
use crate::record::{LogSettings, Recorder, RouteSeries, ServerNames, Sinks};
use crate::rules::client::TrustedProxies;
use crate::rules::decision::Policy;
use crate::store::AnyStore;
use crate::store::snapshot::SnapshotWriter;
use crate::upstream::Upstream;
use crate::words::clock::Clock;
use crate::words::files::WatchedFile;
use crate::{gateway, listen, store, upstream};

/// The running gateway, seen from the thread that controls it.
pub struct App {
    pub(super) live: LiveSnapshot,
    pub(super) store_settings: store::StoreSettings,
    pub(super) store: Arc<AnyStore>,
    /// The clock that every decision is made by.
    pub(super) clock: Clock,
    /// Writes the snapshot of a store in memory.
    pub(super) snapshot_writer: Arc<SnapshotWriter>,
    /// Stops `store_task`.
    pub(super) stop_store_task: CancellationToken,
    /// Writes the snapshot of a store in memory, or watches Redis.
    pub(super) store_task: JoinHandle<()>,
    pub(super) sinks: Sinks,
    /// The channels in force.
    pub(super) channels: WebhookChannels,
    /// The lists in force that follow a source.
    pub(super) lists: Arc<ArcSwap<OpenLists>>,
    pub(super) source_tasks: SourceTasks,
    /// The store's Redis, for the audit trail and for messages.
    pub(super) redis: Option<Arc<dyn StoreRedis>>,
    pub(super) log: Option<Arc<OperationalLog>>,
    pub(super) log_settings: LogSettings,
    pub(super) workers: Workers,
    pub(super) listeners: Listeners,
    pub(super) connection_settings: Arc<ArcSwap<listen::ConnectionSettings>>,
    pub(super) connections: Connections,
    pub(super) admin: Option<AdminListener>,
    pub(super) control: Arc<AdminState>,
    /// Reloads that operators ask for over the admin API.
    pub(super) reload_requests: mpsc::Receiver<ReloadRequest>,
    pub(super) upstream_tasks: UpstreamTasks,
    pub(super) load: Arc<Load>,
    pub(super) files: Vec<WatchedFile>,
    pub(super) in_force: InForce,
}

impl App {
    /// Where requests are accepted, in the order of the configuration; real ports where it says 0.
    pub fn addresses(&self) -> Vec<ListenAddress> {
        self.listeners.addresses()
    }

    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().and_then(|admin| admin.address.ip())
    }

    /// Every file the configuration was read from.
    pub fn files(&self) -> &[WatchedFile] {
        &self.files
    }

    /// Frees configurations that no request holds any more, on a thread that serves no request.
    pub fn free_unused(&mut self) {
        let unused = self.live.take_unused();
        if !unused.is_empty() {
            task::spawn_blocking(move || drop(unused));
        }
    }

    /// The state that this process hands to a successor.
    pub(super) fn handover_state(&self) -> io::Result<HandoverState> {
        let mut sockets = self.listeners.cloned_sockets()?;
        if let Some(admin) = &self.admin {
            sockets.push(admin.cloned_sockets()?);
        }
        let store = match &*self.store {
            AnyStore::Memory(memory) => Some((Arc::clone(memory), Arc::clone(&self.snapshot_writer))),
            AnyStore::Shared(_) => None,
        };
        Ok(HandoverState { sockets, files: self.listeners.files(), store, clock: self.clock.clone() })
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("listeners", &self.listeners).field("files", &self.files).finish_non_exhaustive()
    }
}

// Builds the snapshot that requests hold out of settings.

/// The settings that become a snapshot.
#[derive(Debug)]
pub struct SnapshotParts {
    pub policy: Policy,
    pub clients: TrustedProxies,
    pub upstreams: Vec<upstream::UpstreamSettings>,
    pub requests: gateway::GatewaySettings,
    pub tracing: Option<TracingSettings>,
    pub tokens: Option<TokenSettings>,
    pub route_series: RouteSeries,
}

/// Builds a snapshot. An upstream or a tracer that did not change is taken over from `previous`. To be called within a runtime.
pub(super) fn build(
    parts: SnapshotParts,
    log: &LogSettings,
    channels: &WebhookChannels,
    (lists, keys): (&OpenLists, &OpenKeys),
    previous: Option<&Snapshot>,
    sinks: &Sinks,
) -> Snapshot {
    let SnapshotParts { policy, clients, upstreams, requests, tracing, tokens, route_series } = parts;
    let known = previous.map_or(&[][..], |snapshot| &snapshot.upstreams);
    let upstreams: Vec<_> = upstreams.into_iter().map(|settings| Upstream::carry_over(settings, known)).collect();
    let recorder = Recorder::new(sinks, log, &policy, upstreams.iter().map(|upstream| server_names(upstream)));
    let known = previous.and_then(|snapshot| snapshot.recorder.tracer());
    let tracer = sinks.span_exporters().open(tracing.as_ref(), known, sinks.metrics());
    let recorder =
        recorder.with_channels(&policy, channels).with_route_series(&policy, route_series).with_tracer(tracer);
    let tokens = keys.verifier(tokens.as_ref(), previous);
    Snapshot::new(policy, clients, upstreams, requests, recorder, lists.addresses().collect()).with_tokens(tokens)
}

fn server_names(upstream: &Upstream) -> ServerNames {
    let settings = upstream.settings();
    let servers = settings.servers.iter().map(|server| Arc::from(server.name()));
    ServerNames { upstream: Arc::clone(&settings.name), servers: servers.collect() }
}

// The snapshot in force, and earlier ones that requests still hold.

/// The one place where the configuration in force is swapped.
#[derive(Debug)]
pub struct LiveSnapshot {
    current: Arc<ArcSwap<Snapshot>>,
    /// Kept until no request holds them, so that no core that serves has to free a list of a million lines.
    retired: Vec<Arc<Snapshot>>,
}

impl LiveSnapshot {
    pub fn new(snapshot: Snapshot) -> Self {
        Self { current: Arc::new(ArcSwap::from_pointee(snapshot)), retired: Vec::new() }
    }

    /// The live snapshot, which the data plane reads.
    pub fn shared(&self) -> Arc<ArcSwap<Snapshot>> {
        Arc::clone(&self.current)
    }

    pub fn load(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Requests that begin from here on are decided by `next`; requests under way keep their snapshot.
    pub fn replace(&mut self, next: Snapshot) {
        self.retired.push(self.current.swap(Arc::new(next)));
    }

    /// The retired snapshots that no request holds any more, to be dropped on a thread that serves no request.
    pub fn take_unused(&mut self) -> Vec<Arc<Snapshot>> {
        self.retired.extract_if(.., |snapshot| Arc::strong_count(snapshot) == 1).collect()
    }
}
