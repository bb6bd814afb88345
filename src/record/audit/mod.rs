//! The audit trail: a line for everything that was done to somebody, where it is kept.
//!
//! Each place has a queue and a writer of its own, so that none waits for another and no request for any of them. What a
//! queue has no room for is dropped and counted.

mod clerk;
mod file;
mod relay;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::task::TaskTracker;

use self::clerk::Clerk;
use self::file::Pages;
pub use self::relay::AppendOutcome;
use self::relay::Relay;
pub use self::relay::StreamAppender;
use super::Metrics;
use super::event::Event;
use crate::files;

/// Of a file of the trail: who may read the logs of a service is its group.
const MODE: u32 = 0o640;

/// Whether this binary can write to `audit.sqlite`.
pub const HAS_SQLITE: bool = cfg!(feature = "sqlite");

/// The `audit` section: none, one or several places.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct AuditSettings {
    /// JSON lines are appended to this file.
    pub file: Option<PathBuf>,
    /// Valid only where the store is a Redis, which the stream then stands in.
    pub redis_stream: Option<RedisStream>,
    /// A database of one table.
    pub sqlite: Option<PathBuf>,
}

/// A stream in the store's Redis.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RedisStream {
    pub key: Arc<str>,
    /// About so many are kept, the latest; at least 1.
    pub max_entries: u64,
}

impl RedisStream {
    /// `max_entries` where the configuration leaves it out.
    pub const MAX_ENTRIES: u64 = 100_000;
}

/// A place of the audit trail that cannot be written to.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the audit trail to {}: {}", path.display(), files::describe(source))]
pub struct AuditError {
    pub path: PathBuf,
    pub source: io::Error,
}

/// The places in force, opened.
#[derive(Debug, Default)]
pub struct AuditTrail {
    settings: AuditSettings,
    file: Option<Arc<Clerk>>,
    sqlite: Option<Arc<Clerk>>,
    redis_stream: Option<Arc<Relay>>,
}

/// What a trail needs beside its settings.
#[derive(Clone, Copy, Debug)]
pub struct AuditContext<'a> {
    pub metrics: &'a Metrics,
    /// The store's Redis, where it is one.
    pub redis: Option<&'a Arc<dyn StreamAppender>>,
    /// Where tasks run.
    pub tasks: &'a TaskTracker,
}

impl AuditTrail {
    /// Opens every place; those that did not change are taken over from `previous` with what waits in them. To be called
    /// within a runtime.
    pub fn open(
        settings: &AuditSettings,
        previous: Option<&Self>,
        context: AuditContext<'_>,
    ) -> Result<Self, AuditError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            |source| AuditError { path, source }
        };
        let before =
            |same: fn(&AuditSettings, &AuditSettings) -> bool| previous.filter(|trail| same(&trail.settings, settings));
        let kept = before(|old, new| old.file == new.file).and_then(|trail| trail.file.clone());
        let file = match (&settings.file, kept) {
            (None, _) => None,
            (Some(_), Some(kept)) => Some(kept),
            (Some(path), None) => {
                let open = || Clerk::start(Pages::open(path)?, context.metrics.audit_dropped("file"), "file");
                Some(Arc::new(open().map_err(failed(path))?))
            }
        };
        let kept = before(|old, new| old.sqlite == new.sqlite).and_then(|trail| trail.sqlite.clone());
        let sqlite = match (&settings.sqlite, kept) {
            (None, _) => None,
            (Some(_), Some(kept)) => Some(kept),
            (Some(path), None) => Some(Arc::new(database(path, context.metrics).map_err(failed(path))?)),
        };
        let kept = before(|old, new| old.redis_stream == new.redis_stream).and_then(|trail| trail.redis_stream.clone());
        let redis_stream = match (&settings.redis_stream, kept, context.redis) {
            (Some(_), Some(kept), _) => Some(kept),
            (Some(stream), None, Some(redis)) => {
                let dropped = context.metrics.audit_dropped("redis_stream");
                Some(Arc::new(Relay::start(stream.clone(), Arc::clone(redis), dropped, context.tasks)))
            }
            // Without a Redis the configuration is refused.
            (Some(_), None, None) | (None, _, _) => None,
        };
        Ok(Self { settings: settings.clone(), file, sqlite, redis_stream })
    }

    pub fn is_empty(&self) -> bool {
        self.file.is_none() && self.sqlite.is_none() && self.redis_stream.is_none()
    }

    /// Hands an entry to every place. Waits for nobody.
    pub(super) fn enter(&self, event: &Arc<Event>) {
        for clerk in [&self.file, &self.sqlite].into_iter().flatten() {
            clerk.enter(event);
        }
        if let Some(relay) = &self.redis_stream {
            relay.enter(event);
        }
    }

    /// What ends when everything that waits is written, after the trail is dropped.
    pub(super) fn ends(&self) -> Vec<clerk::End> {
        [&self.file, &self.sqlite].into_iter().flatten().map(|clerk| clerk.end()).collect()
    }
}

#[cfg(feature = "sqlite")]
fn database(path: &Path, metrics: &Metrics) -> io::Result<Clerk> {
    // The library would make it for everybody to read. What it puts beside the file has the rights of the file.
    files::create(path, MODE)?;
    let database = sqlite::Database::open(path).map_err(io::Error::other)?;
    Clerk::start(database, metrics.audit_dropped("sqlite"), "sqlite")
}

#[cfg(not(feature = "sqlite"))]
fn database(_: &Path, _: &Metrics) -> io::Result<Clerk> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this portcullis was built without the feature `sqlite`"))
}

#[cfg(test)]
mod tests;
