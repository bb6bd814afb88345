//! The running gateway.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::mpsc;
use tokio::task;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::admin_listener::AdminListener;
use super::followed_lists::OpenLists;
use super::known_warnings::KnownWarnings;
use super::listeners::Listeners;
use super::live_snapshot::LiveSnapshot;
use super::process_context::Load;
use super::source_tasks::SourceTasks;
use super::takeover::HandoverState;
use super::upstream_tasks::UpstreamTasks;
use super::workers::Workers;
use crate::admin::AdminState;
use crate::admin::ReloadRequest;
use crate::clock::Clock;
use crate::files::WatchedFile;
use crate::listen;
use crate::listen::Connections;
use crate::listen::ListenAddress;
use crate::record::LogSettings;
use crate::record::Sinks;
use crate::record::audit::StreamAppender;
use crate::record::log::OperationalLog;
use crate::record::notify::WebhookChannels;
use crate::store;
use crate::store::AnyStore;
use crate::store::snapshot::SnapshotWriter;

/// The running gateway, seen from the thread that controls it.
pub struct App {
    pub(super) live: LiveSnapshot,
    pub(super) store_settings: store::Settings,
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
    /// The store's Redis as a place for the audit trail.
    pub(super) streams: Option<Arc<dyn StreamAppender>>,
    pub(super) log: Option<Arc<OperationalLog>>,
    pub(super) log_settings: LogSettings,
    pub(super) workers: Workers,
    pub(super) listeners: Listeners,
    pub(super) connection_settings: Arc<ArcSwap<listen::Settings>>,
    pub(super) connections: Connections,
    pub(super) admin: Option<AdminListener>,
    pub(super) control: Arc<AdminState>,
    /// Reloads that operators ask for over the admin API.
    pub(super) reload_requests: mpsc::Receiver<ReloadRequest>,
    pub(super) upstream_tasks: UpstreamTasks,
    pub(super) load: Arc<Load>,
    pub(super) files: Vec<WatchedFile>,
    pub(super) warnings: KnownWarnings,
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

    /// What this process hands to one that takes over.
    pub(super) fn handover_state(&self) -> io::Result<HandoverState> {
        let mut sockets = self.listeners.cloned_sockets()?;
        if let Some(admin) = &self.admin {
            sockets.push(admin.cloned_sockets()?);
        }
        let store = match &*self.store {
            AnyStore::Memory(memory) => Some((Arc::clone(memory), Arc::clone(&self.snapshot_writer))),
            AnyStore::Shared(_) => None,
        };
        Ok(HandoverState { sockets, store, clock: self.clock.clone() })
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("listeners", &self.listeners).field("files", &self.files).finish_non_exhaustive()
    }
}
