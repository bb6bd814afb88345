//! The first half of a reload: the files are read, checked and built, on a thread of its own.

use std::sync::Arc;

use tokio::task;
use tokio::task::JoinHandle;

use super::error::ReloadError;
use crate::admin::AdminSettings;
use crate::app::App;
use crate::app::Load;
use crate::app::changes::Changes;
use crate::app::followed_lists::OpenLists;
use crate::app::prepare::open_trail;
use crate::app::snapshot;
use crate::app::snapshot::SnapshotParts;
use crate::app::token_keys::OpenKeys;
use crate::clock::Clock;
use crate::config::Diagnostic;
use crate::config::Settings;
use crate::config::ShownConfig;
use crate::files::WatchedFile;
use crate::gateway::Snapshot;
use crate::listen;
use crate::listen::ListenerConfig;
use crate::record::LogSettings;
use crate::record::Sinks;
use crate::record::audit::AuditTrail;
use crate::record::audit::StreamAppender;
use crate::record::notify::WebhookChannels;
use crate::store;

/// A configuration that was read and built. Its addresses are not bound yet.
pub(in crate::app) struct BuiltConfig {
    pub(super) snapshot: Snapshot,
    pub(super) changes: Changes,
    pub(super) listen: Vec<ListenerConfig>,
    pub(super) admin: Option<AdminSettings>,
    pub(super) other: OtherSettings,
}

/// The settings that are neither in the snapshot nor bound.
pub(super) struct OtherSettings {
    pub(super) store: store::Settings,
    pub(super) log: LogSettings,
    pub(super) trail: AuditTrail,
    pub(super) channels: WebhookChannels,
    pub(super) lists: OpenLists,
    pub(super) keys: OpenKeys,
    pub(super) connections: listen::Settings,
    pub(super) files: Vec<WatchedFile>,
    pub(super) warnings: Vec<Diagnostic>,
    pub(super) shown: ShownConfig,
}

/// Builds a configuration beside the one in force.
struct ConfigReader {
    load: Arc<Load>,
    previous: Arc<Snapshot>,
    sinks: Sinks,
    channels: WebhookChannels,
    lists: Arc<OpenLists>,
    keys: OpenKeys,
    clock: Clock,
    streams: Option<Arc<dyn StreamAppender>>,
}

impl App {
    /// Reads, checks and builds everything on a thread of its own: a list of a million lines takes a while, and a file
    /// system that hangs takes for ever. [`Self::finish_reload`] swaps it in.
    pub(super) fn begin_reload(&self) -> JoinHandle<Result<Box<BuiltConfig>, ReloadError>> {
        let reader = ConfigReader {
            load: Arc::clone(&self.load),
            previous: self.live.load(),
            sinks: self.sinks.clone(),
            channels: self.channels.clone(),
            lists: self.lists.load_full(),
            keys: self.source_tasks.keys().clone(),
            clock: self.clock.clone(),
            streams: self.streams.clone(),
        };
        task::spawn_blocking(move || reader.read().map(Box::new))
    }
}

impl ConfigReader {
    /// Blocks. To be called within a runtime.
    fn read(self) -> Result<BuiltConfig, ReloadError> {
        let Self { load, previous, sinks, channels, lists, keys, clock, streams } = self;
        let Settings {
            listen,
            admin,
            clients,
            store,
            upstreams,
            policy,
            notify,
            followed,
            audit,
            log,
            route_series,
            connections,
            requests,
            tracing,
            tokens,
            files,
            outputs,
            warnings,
            shown,
        } = load().map_err(ReloadError::Mistakes)?;
        let trail = open_trail(&sinks, &audit, streams.as_ref(), &outputs)?;
        let channels = sinks.event_bus().open_channels(&notify, &channels, sinks.metrics());
        let parts = SnapshotParts { policy, clients, upstreams, requests, tracing, tokens, route_series };
        let (lists, keys) = (lists.reopen(followed, &clock), keys.reopen(parts.tokens.as_ref()));
        let snapshot = snapshot::build(parts, &log, &channels, (&lists, &keys), Some(&previous), &sinks);
        let changes = Changes::between(&previous, &snapshot);
        let other = OtherSettings { store, log, trail, channels, lists, keys, connections, files, warnings, shown };
        Ok(BuiltConfig { snapshot, changes, listen, admin, other })
    }
}
