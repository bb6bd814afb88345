//! Builds the store, starts its background task, and describes it for the log.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::takeover::Predecessor;
use crate::config::{Diagnostic, OutputFile, Settings, Severity};
use crate::record::Metrics;
use crate::record::audit::{AppendOutcome, AuditError, AuditTrail, RedisStream, StoreRedis};
use crate::record::log::{LogFile, LogFileError};
use crate::record::metrics::StoreMetrics;
use crate::store;
use crate::store::redis::Failure;
use crate::store::snapshot::SnapshotWriter;
use crate::store::{AnyStore, Failover, MemoryStore, Observer, snapshot};
use crate::words::clock::Clock;
use crate::words::files;

/// A Redis that hangs must not make the start hang.
const FIRST_CONTACT_TIMEOUT: Duration = Duration::from_secs(1);

/// A Redis that has no parts yet grants none for 2 s.
const FIRST_PART_TIMEOUT: Duration = Duration::from_millis(2500);

/// The kinds of store, as metrics and `/readyz` call them.
pub(super) const REDIS: &str = "redis";

pub(super) const MEMORY: &str = "memory";

/// Builds the store of the first core. Nothing is connected yet. A store in memory begins with the bans and known
/// clients of `predecessor`, or else of its snapshot file.
pub(super) fn build(
    settings: &store::StoreSettings,
    clock: &Clock,
    metrics: &Metrics,
    predecessor: Option<&mut Predecessor>,
) -> AnyStore {
    match &settings.redis {
        None => {
            let mut store = MemoryStore::new(&settings.memory, clock.clone());
            let is_imported = predecessor.is_some_and(|predecessor| import(predecessor, &mut store));
            if let Some(path) = settings.memory.snapshot.as_ref().filter(|_| !is_imported) {
                snapshot::restore(path, &mut store);
            }
            AnyStore::Memory(Arc::new(store.into()))
        }
        Some(redis) => {
            let observer = Arc::new(StoreMetricsObserver(metrics.store(REDIS)));
            AnyStore::Shared(Failover::new(settings, redis.clone(), clock.clone(), observer))
        }
    }
}

/// Whether the store now has the bans and known clients of the process before.
fn import(predecessor: &mut Predecessor, store: &mut MemoryStore) -> bool {
    match predecessor.state() {
        Ok(state) if state.is_empty() => false,
        Ok(state) if snapshot::import(&state, store) => {
            predecessor.shares_hash_keys = true;
            true
        }
        Ok(_) => {
            warn!("cannot take over the bans of the running gateway: it is of another version");
            false
        }
        Err(error) => {
            warn!(%error, "cannot take over the bans of the running gateway: {error}");
            false
        }
    }
}

/// Starts the background task of a store. Waits a while for the first answer of Redis, so that the first requests are
/// decided there, and for a part of every limit, so that there is something to grant should Redis fail. After `stop` the task writes its last snapshot and ends.
pub(super) async fn start_task(
    store: &AnyStore,
    snapshot_writer: &Arc<SnapshotWriter>,
    stop: &CancellationToken,
) -> JoinHandle<()> {
    match store {
        AnyStore::Memory(store) => {
            tokio::spawn(snapshot::write_changes(Arc::clone(snapshot_writer), Arc::clone(store.memory()), stop.clone()))
        }
        AnyStore::Shared(shared) => {
            let watching = tokio::spawn(shared.watch(stop.clone()));
            shared.shared().first_contact(FIRST_CONTACT_TIMEOUT).await;
            shared.shared().first_part(FIRST_PART_TIMEOUT).await;
            watching
        }
    }
}

/// Counts round trips and failures of the store in the metrics.
#[derive(Debug)]
struct StoreMetricsObserver(StoreMetrics);

impl Observer for StoreMetricsObserver {
    fn round_trip(&self, span: Duration) {
        self.0.answered(span);
    }

    fn failed(&self, _cause: &'static str) {
        self.0.failed();
    }

    fn went_down(&self) {
        self.0.went_down();
    }

    fn overloaded(&self) {
        self.0.overloaded();
    }

    fn leased(&self) {
        self.0.leased();
    }
}

/// `counts are kept in redis at 127.0.0.1:6379 (single), prefix portcullis`, without any password.
pub(super) fn describe(settings: &store::StoreSettings) -> String {
    let Some(redis) = &settings.redis else { return "counts are kept in memory".to_owned() };
    let addresses: Vec<_> = redis.urls.iter().map(ToString::to_string).collect();
    format!("counts are kept in redis at {} ({}), prefix {}", addresses.join(", "), redis.mode, redis.key_prefix)
}

/// The keys of the `store` section that differ. They take effect with the next start.
pub(super) fn keys_for_next_start(
    in_force: &store::StoreSettings,
    configured: &store::StoreSettings,
) -> Vec<&'static str> {
    let mut keys = Vec::new();
    match (&in_force.redis, &configured.redis) {
        (None, None) => {}
        (Some(old), Some(new)) => {
            let compared = [
                ("store.redis.url", old.urls != new.urls),
                ("store.redis.password_file", old.password_file != new.password_file),
                ("store.redis.mode", old.mode != new.mode),
                ("store.redis.timeout", old.timeout != new.timeout),
                ("store.redis.wait", old.wait != new.wait),
                ("store.redis.key_prefix", old.key_prefix != new.key_prefix),
                ("store.redis.hash_slot", old.hash_slot != new.hash_slot),
            ];
            keys.extend(compared.into_iter().filter_map(|(key, differs)| differs.then_some(key)));
        }
        (None, Some(_)) | (Some(_), None) => keys.push("store.redis"),
    }
    if in_force.memory.max_keys != configured.memory.max_keys {
        keys.push("store.memory.max_keys");
    }
    if in_force.memory.max_sessions != configured.memory.max_sessions {
        keys.push("store.memory.max_sessions");
    }
    if in_force.memory.snapshot != configured.memory.snapshot {
        keys.push("store.memory.snapshot");
    }
    if in_force.nodes != configured.nodes {
        keys.push("store.nodes");
    }
    keys
}

// The store's Redis, for the audit trail and for messages.

/// Appends audit entries to streams in the store's Redis, and claims messages there.
#[derive(Debug)]
pub(super) struct StoreLink(AnyStore);

impl StoreLink {
    /// Uses connections of its own, on the thread that calls this. `None`: the store is not in Redis.
    pub(super) fn of(store: &AnyStore) -> Option<Arc<dyn StoreRedis>> {
        matches!(store, AnyStore::Shared(_)).then(|| Arc::new(Self(store.on_another_core())) as Arc<dyn StoreRedis>)
    }
}

impl StoreRedis for StoreLink {
    fn append<'a>(
        &'a self,
        stream: &'a RedisStream,
        fields: &'a [(&'static str, String)],
    ) -> Pin<Box<dyn Future<Output = AppendOutcome> + Send + 'a>> {
        Box::pin(async {
            let AnyStore::Shared(shared) = &self.0 else { return AppendOutcome::Unavailable };
            match shared.append(&stream.key, stream.max_entries, fields).await {
                Ok(()) => AppendOutcome::Appended,
                Err((Failure::Open, _)) => AppendOutcome::Unavailable,
                Err((Failure::Refused, words)) => AppendOutcome::Lost(words),
                Err((Failure::Unknown, _)) => AppendOutcome::Lost("redis did not answer in time".to_owned()),
            }
        })
    }

    fn claim<'a>(&'a self, what: &'a str, held: Duration) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        Box::pin(async move {
            let AnyStore::Shared(shared) = &self.0 else { return true };
            shared.claim(what, held).await.unwrap_or(true)
        })
    }
}

// Finds files that a start could not write, without starting.

/// Every file that the gateway would write and cannot: a log or an audit trail with which it does not start, and a snapshot without
/// which it does. Nothing is opened or created.
pub fn check_outputs(settings: &Settings) -> Vec<Diagnostic> {
    let audit = AuditTrail::check(&settings.audit);
    let mut found: Vec<_> = audit.iter().map(|error| audit_mistake(&settings.outputs, error)).collect();
    found.extend(LogFile::check(&settings.log).map(|error| log_mistake(&settings.outputs, &error)));
    let snapshot = settings.store.redis.is_none().then_some(settings.store.memory.snapshot.as_ref()).flatten();
    if let Some((path, error)) = snapshot.and_then(|path| Some((path, snapshot::check_writable(path).err()?))) {
        let message = format!(
            "cannot write the snapshot to {}: {}: a restart would lose bans, known clients and sessions",
            path.display(),
            files::describe(&error)
        );
        let mistake = OutputFile::unwritable(&settings.outputs, path, &message);
        found.push(Diagnostic { severity: Severity::Warning, ..mistake });
    }
    found.sort();
    found
}

/// The mistake of a place of the audit trail that cannot be opened, at the line that names it.
pub(super) fn audit_mistake(outputs: &[OutputFile], error: &AuditError) -> Diagnostic {
    OutputFile::unwritable(outputs, &error.path, &error.to_string())
}

/// The mistake of a log file that cannot be opened, at the line that names it.
pub fn log_mistake(outputs: &[OutputFile], error: &LogFileError) -> Diagnostic {
    OutputFile::unwritable(outputs, &error.path, &error.to_string())
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::rules::limit::OnFailure;
    use crate::store::any_store::Nodes;
    use crate::store::{memory, redis};

    fn in_memory() -> store::StoreSettings {
        store::StoreSettings {
            memory: memory::MemorySettings { max_keys: 10, max_sessions: 1000, snapshot: None },
            redis: None,
            on_failure: OnFailure::Local,
            nodes: Nodes::Auto,
        }
    }

    fn shared(url: &str) -> store::StoreSettings {
        let redis = redis::RedisSettings {
            urls: vec![url.parse().unwrap()],
            mode: redis::Mode::Single,
            timeout: Duration::from_millis(100),
            password_file: None,
            wait: 0,
            key_prefix: "portcullis".to_owned(),
            hash_slot: redis::HashSlot::Key,
        };
        store::StoreSettings { redis: Some(redis), ..in_memory() }
    }

    #[test]
    fn the_description_of_a_store_holds_no_password() {
        assert_eq!(describe(&in_memory()), "counts are kept in memory");
        assert_eq!(
            describe(&shared("redis://user:secret@10.0.0.5:6380/0")),
            "counts are kept in redis at 10.0.0.5:6380 (single), prefix portcullis"
        );
    }

    #[test]
    fn keys_that_differ_are_named() {
        assert!(keys_for_next_start(&in_memory(), &in_memory()).is_empty());
        assert_eq!(keys_for_next_start(&in_memory(), &shared("redis://h:1")), ["store.redis"]);
        let mut other = shared("redis://h:2");
        other.nodes = Nodes::Fixed(NonZeroU32::new(4).unwrap());
        other.memory.max_keys = 20;
        other.memory.max_sessions = 20;
        other.memory.snapshot = Some("state".into());
        assert_eq!(
            keys_for_next_start(&shared("redis://h:1"), &other),
            [
                "store.redis.url",
                "store.memory.max_keys",
                "store.memory.max_sessions",
                "store.memory.snapshot",
                "store.nodes"
            ]
        );
        // Each limit has its own `on_failure`, which changes with the reload.
        let mut other = in_memory();
        other.on_failure = OnFailure::Deny;
        assert!(keys_for_next_start(&in_memory(), &other).is_empty());
    }
}
