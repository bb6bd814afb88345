//! The open sinks of the audit trail.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::StoreRedis;
use super::crowdsec::AlertWriter;
use super::redis_stream::RedisStreamWriter;
#[cfg(feature = "sqlite")]
use super::sqlite::AuditDatabase;
use super::writer::{AuditWriter, WriterFinished};
use crate::record::audit::writer::AuditFile;
use crate::record::event::EventKind;
use crate::record::{Event, Metrics};
use crate::wire::crowdsec::Machine;
use crate::words::files;
use crate::words::files::AppendFile;

/// A sink of the audit trail that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the audit trail to {}: {}", path.display(), files::describe(source))]
pub struct AuditError {
    pub path: PathBuf,
    pub source: io::Error,
}

/// The sinks in force.
#[derive(Debug, Default)]
pub struct AuditTrail {
    settings: AuditSettings,
    file: Option<Arc<AuditWriter>>,
    sqlite: Option<Arc<AuditWriter>>,
    redis_stream: Option<Arc<RedisStreamWriter>>,
    crowdsec: Option<Arc<AlertWriter>>,
}

/// The parts that a trail needs besides its settings.
#[derive(Clone, Copy, Debug)]
pub struct AuditContext<'a> {
    pub metrics: &'a Metrics,
    /// `None`: the store is not Redis.
    pub redis: Option<&'a Arc<dyn StoreRedis>>,
    /// Runs the tasks of the trail.
    pub tasks: &'a TaskTracker,
    /// Cancelled when the gateway stops.
    pub closing: &'a CancellationToken,
}

impl AuditTrail {
    /// Opens every sink. Unchanged sinks are taken from `previous`, with the events in their queues. To be called
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
        let unchanged =
            |same: fn(&AuditSettings, &AuditSettings) -> bool| previous.filter(|trail| same(&trail.settings, settings));
        let kept = unchanged(|old, new| old.file == new.file).and_then(|trail| trail.file.clone());
        let file = match (&settings.file, kept) {
            (None, _) => None,
            (Some(_), Some(kept)) => Some(kept),
            (Some(path), None) => Some(Arc::new(file_writer(path, context.metrics).map_err(failed(path))?)),
        };
        let kept = unchanged(|old, new| old.sqlite == new.sqlite).and_then(|trail| trail.sqlite.clone());
        let sqlite = match (&settings.sqlite, kept) {
            (None, _) => None,
            (Some(_), Some(kept)) => Some(kept),
            (Some(path), None) => Some(Arc::new(database_writer(path, context.metrics).map_err(failed(path))?)),
        };
        let kept =
            unchanged(|old, new| old.redis_stream == new.redis_stream).and_then(|trail| trail.redis_stream.clone());
        let redis_stream = match (&settings.redis_stream, kept, context.redis) {
            (Some(_), Some(kept), _) => Some(kept),
            (Some(stream), None, Some(redis)) => {
                let AuditContext { metrics, tasks, .. } = context;
                Some(Arc::new(RedisStreamWriter::start(stream.clone(), Arc::clone(redis), metrics, tasks)))
            }
            // A configuration with a stream and without a Redis store is refused when it is read.
            (Some(_), None, None) | (None, _, _) => None,
        };
        let kept = unchanged(|old, new| old.crowdsec == new.crowdsec).and_then(|trail| trail.crowdsec.clone());
        let crowdsec = settings.crowdsec.as_ref().map(|machine| {
            kept.unwrap_or_else(|| {
                let AuditContext { metrics, tasks, closing, .. } = context;
                Arc::new(AlertWriter::start(machine.clone(), metrics, tasks, closing.clone()))
            })
        });
        Ok(Self { settings: settings.clone(), file, sqlite, redis_stream, crowdsec })
    }

    /// The places that [`open`](Self::open) could not open, as far as that shows without opening them.
    pub fn check(settings: &AuditSettings) -> Vec<AuditError> {
        let places = [(&settings.file, AppendFile::check as Check), (&settings.sqlite, check_database)];
        let unwritable = |(path, check): (&Option<PathBuf>, Check)| {
            let path = path.clone()?;
            check(&path).err().map(|source| AuditError { path, source })
        };
        places.into_iter().filter_map(unwritable).collect()
    }

    /// Events go to it from now on.
    pub(in crate::record) fn put_in_force(&self) {
        [&self.file, &self.sqlite].into_iter().flatten().for_each(|writer| writer.put_in_force());
    }

    /// Whether it has no sink for denials. `CrowdSec` gets bans alone.
    pub fn is_empty(&self) -> bool {
        self.file.is_none() && self.sqlite.is_none() && self.redis_stream.is_none()
    }

    /// Queues an event for every sink. Does not wait.
    pub(in crate::record) fn append(&self, event: &Arc<Event>) {
        for writer in [&self.file, &self.sqlite].into_iter().flatten() {
            writer.append(event);
        }
        if let Some(stream) = &self.redis_stream {
            stream.append(event);
        }
        if let Some(alerts) = &self.crowdsec {
            alerts.append(event);
        }
    }

    /// Another gateway has lifted a ban: where a limit of this one began it, perhaps only this one knows the address.
    pub(in crate::record) fn append_remote_lift(&self, event: &Event) {
        if let Some(alerts) = &self.crowdsec
            && event.kind == EventKind::Unban
            && event.limit.is_some()
        {
            alerts.append(event);
        }
    }

    /// One for each writer thread. It resolves when the trail is dropped and the thread has written its queue.
    pub(in crate::record) fn finished(&self) -> Vec<WriterFinished> {
        [&self.file, &self.sqlite].into_iter().flatten().map(|writer| writer.finished()).collect()
    }
}

/// Says of a place why it cannot be opened.
type Check = fn(&Path) -> io::Result<()>;

fn file_writer(path: &Path, metrics: &Metrics) -> io::Result<AuditWriter> {
    AuditWriter::start(AuditFile::open(path)?, metrics, "file")
}

#[cfg(feature = "sqlite")]
fn check_database(path: &Path) -> io::Result<()> {
    files::check_regular_or_absent(path)?;
    files::check_writable(path)?;
    // SQLite puts files beside it.
    files::check_folder_writable(path)?;
    AuditDatabase::check(path)
}

#[cfg(not(feature = "sqlite"))]
fn check_database(_: &Path) -> io::Result<()> {
    Err(without_sqlite())
}

#[cfg(feature = "sqlite")]
fn database_writer(path: &Path, metrics: &Metrics) -> io::Result<AuditWriter> {
    check_database(path)?;
    // SQLite would create the file readable by everyone. The files that SQLite puts beside it get the same mode.
    files::create(path, files::LINES_MODE)?;
    let database = AuditDatabase::open(path).map_err(io::Error::other)?;
    AuditWriter::start(database, metrics, "sqlite")
}

#[cfg(not(feature = "sqlite"))]
fn database_writer(_: &Path, _: &Metrics) -> io::Result<AuditWriter> {
    Err(without_sqlite())
}

#[cfg(not(feature = "sqlite"))]
fn without_sqlite() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "this portcullis was built without the feature `sqlite`")
}

// The `audit` section of the configuration.

/// Whether this binary can write to `audit.sqlite`.
pub const HAS_SQLITE: bool = cfg!(feature = "sqlite");

/// Each sink is optional, and several may be configured.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct AuditSettings {
    /// A file of JSON lines.
    pub file: Option<PathBuf>,
    /// A stream in the store's Redis. Valid only where the store is Redis.
    pub redis_stream: Option<RedisStream>,
    /// A database of one table.
    pub sqlite: Option<PathBuf>,
    /// Where bans of addresses are reported.
    pub crowdsec: Option<Machine>,
}

/// A stream in the store's Redis.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RedisStream {
    pub key: Arc<str>,
    /// Redis keeps about this many entries, the latest. At least 1.
    pub max_entries: u64,
}

impl RedisStream {
    /// `max_entries` where the configuration leaves it out.
    pub const MAX_ENTRIES: u64 = 100_000;
}

#[cfg(test)]
mod tests;
