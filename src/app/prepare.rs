//! The first half of a start: everything that reads and opens files, before anything is served.

use std::panic;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::task;

use super::audit_stream::RedisStreams;
use super::followed_lists::OpenLists;
use super::outputs::audit_mistake;
use super::snapshot;
use super::snapshot::SnapshotParts;
use super::start_error::StartError;
use super::store;
use super::takeover::Predecessor;
use super::token_keys::OpenKeys;
use crate::clock::Clock;
use crate::config::OutputFile;
use crate::crowdsec::ListSource;
use crate::gateway::Snapshot;
use crate::record::LogSettings;
use crate::record::Sinks;
use crate::record::audit::AuditSettings;
use crate::record::audit::AuditTrail;
use crate::record::audit::StreamAppender;
use crate::record::notify::NotifySettings;
use crate::record::notify::WebhookChannels;
use crate::store::AnyStore;

/// The settings that are needed to prepare a start.
pub(super) struct Preparation {
    pub(super) store: crate::store::Settings,
    pub(super) clock: Clock,
    pub(super) audit: AuditSettings,
    pub(super) outputs: Vec<OutputFile>,
    pub(super) notify: NotifySettings,
    pub(super) followed: Vec<ListSource>,
    pub(super) parts: SnapshotParts,
    pub(super) log_settings: LogSettings,
}

/// What a start goes on with.
pub(super) struct PreparedParts {
    pub(super) snapshot: Snapshot,
    pub(super) store: Arc<AnyStore>,
    pub(super) streams: Option<Arc<dyn StreamAppender>>,
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
        let streams = RedisStreams::of(&store);
        let trail = open_trail(sinks, &audit, streams.as_ref(), &outputs)?;
        let channels = sinks.event_bus().open_channels(&notify, &WebhookChannels::default(), sinks.metrics());
        let lists = OpenLists::default().reopen(followed, &clock);
        let keys = OpenKeys::default().reopen(parts.tokens.as_ref());
        let snapshot = snapshot::build(parts, &log_settings, &channels, (&lists, &keys), None, sinks);
        let lists = Arc::new(ArcSwap::from_pointee(lists));
        Ok(PreparedParts { snapshot, store, streams, trail, channels, lists, keys, log_settings })
    }
}

/// Opens the places of the audit trail. A place that cannot be opened is a mistake at the line that names it.
pub(super) fn open_trail(
    sinks: &Sinks,
    settings: &AuditSettings,
    streams: Option<&Arc<dyn StreamAppender>>,
    outputs: &[OutputFile],
) -> Result<AuditTrail, StartError> {
    sinks
        .event_bus()
        .open_trail(settings, streams, sinks.metrics())
        .map_err(|error| StartError::Mistakes(vec![audit_mistake(outputs, &error)]))
}
