//! Reading the configuration anew: all of it is applied, or nothing.

mod apply;

use std::future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio::{task, time};
use tracing::{debug, error, info, warn};

use crate::admin::{
    AdminSettings, LoadedConfig, Mistake, ReloadRefusal, ReloadReply, ReloadRequest, Reloaded, WaitingSettings,
};
use crate::app::announce::{Changes, KnownWarnings, log_mistakes};
use crate::app::followed_lists::OpenLists;
use crate::app::start::open_trail;
use crate::app::state::SnapshotParts;
use crate::app::store::log_mistake;
use crate::app::token_keys::OpenKeys;
use crate::app::{App, Load, Origin, sockets, state};
use crate::config::{Diagnostic, NamedAddress, OutputFile, Settings, Severity, ShownConfig};
use crate::gateway::Snapshot;
use crate::listen::ListenerConfig;
use crate::record::audit::{AuditTrail, StoreRedis};
use crate::record::log::OpenedLog;
use crate::record::notify::WebhookChannels;
use crate::record::{LogSettings, Sinks};
use crate::words::clock;
use crate::words::clock::Clock;
use crate::words::files::WatchedFile;
use crate::{listen, store};

// Reloads as they are requested: one at a time, read on a thread of its own, so that a file system that hangs delays no
// signal.

/// How many operators may wait while a file system hangs.
const MAX_WAITING: usize = 64;

/// How long renewing a certificate and its key may take.
const RENEWAL_TIME: Duration = Duration::from_secs(2);

/// The reload under way, and the one that is to follow it.
#[derive(Default)]
pub(in crate::app) struct ReloadQueue {
    running: Option<RunningReload>,
    /// A reload was requested while one was under way, which may have read its files before.
    is_requested_again: bool,
    /// Operators who wait for the reload that is to follow.
    waiting: Vec<oneshot::Sender<ReloadReply>>,
    /// A certificate and its key are two files that seldom change at the same moment. While only one is new they do not
    /// match, which is an error only if it lasts.
    half_renewed_since: Option<Instant>,
}

struct RunningReload {
    reading: JoinHandle<Result<Box<BuiltConfig>, ReloadError>>,
    /// A changed file caused it, no request.
    is_by_change: bool,
    /// Operators who wait for it.
    waiting: Vec<oneshot::Sender<ReloadReply>>,
}

/// The next item of the queue.
pub(in crate::app) enum ReloadStep {
    Read(Result<Box<BuiltConfig>, ReloadError>),
    /// A certificate and its key have not belonged together for too long.
    StaysHalfRenewed,
}

impl ReloadQueue {
    /// An operator requests a reload over the admin API, and waits for its result. The reply is dropped if too many wait.
    pub(in crate::app) fn request_and_reply(&mut self, app: &App, origin: &Origin, request: ReloadRequest) {
        if let Some(why_not) = why_not(origin) {
            // An error means that the operator has gone.
            let _ = request.reply.send(Err(ReloadRefusal::NoFile(why_not)));
        } else if self.waiting.len() < MAX_WAITING {
            self.waiting.push(request.reply);
            self.request_from_file(app);
        }
    }

    /// An operator requests a reload by a signal.
    pub(in crate::app) fn request(&mut self, app: &App, origin: &Origin) {
        let Some(why_not) = why_not(origin) else { return self.request_from_file(app) };
        sockets::reloading();
        info!("nothing to reload: {why_not}");
        sockets::ready(false);
    }

    fn request_from_file(&mut self, app: &App) {
        self.half_renewed_since = None;
        if self.is_running() {
            self.is_requested_again = true;
            return warn!("a reload is under way, and its files are not read yet; another one follows it");
        }
        self.begin(app, false);
    }

    /// A file has changed.
    pub(in crate::app) fn file_changed(&mut self, app: &App) {
        self.begin(app, true);
    }

    fn begin(&mut self, app: &App, is_by_change: bool) {
        sockets::reloading();
        let waiting = std::mem::take(&mut self.waiting);
        self.running = Some(RunningReload { reading: app.begin_reload(), is_by_change, waiting });
    }

    pub(in crate::app) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Waits for the next step, to be [handled](Self::handle). May be dropped at any time and called again.
    pub(in crate::app) async fn next(&mut self) -> ReloadStep {
        if let Some(RunningReload { reading, .. }) = &mut self.running {
            return ReloadStep::Read(reading.await.unwrap_or(Err(ReloadError::Panic)));
        }
        match self.half_renewed_since {
            Some(since) => time::sleep_until(since + RENEWAL_TIME).await,
            None => future::pending().await,
        }
        ReloadStep::StaysHalfRenewed
    }

    pub(in crate::app) fn handle(&mut self, app: &mut App, step: ReloadStep) {
        let read = match step {
            ReloadStep::Read(read) => read,
            ReloadStep::StaysHalfRenewed => return self.request_from_file(app),
        };
        let Some(RunningReload { is_by_change, waiting, .. }) = self.running.take() else { return };
        if is_by_change && !self.is_requested_again && read.as_ref().is_err_and(ReloadError::is_half_renewed) {
            debug!("a key does not belong to its certificate, perhaps one of them is yet to be renewed");
            self.half_renewed_since.get_or_insert_with(Instant::now);
        } else {
            let result = app.finish_reload(read);
            for operator in waiting {
                // An error means that the operator has gone.
                let _ = operator.send(reply(&result, &app.in_force));
            }
            self.half_renewed_since = None;
        }
        sockets::ready(false);
        if std::mem::take(&mut self.is_requested_again) {
            self.begin(app, false);
        }
    }
}

/// Why there is nothing that could be read again; `None`: there is a file.
fn why_not(origin: &Origin) -> Option<&'static str> {
    match origin {
        Origin::File(_) => None,
        Origin::Flags => Some("the configuration is the command line"),
        Origin::StandardInput => Some("the configuration came from standard input, which cannot be read again"),
    }
}

// The first half of a reload: the files are read, checked and built, on a thread of its own.

/// A configuration that was read and built. Its addresses are not bound yet.
pub(in crate::app) struct BuiltConfig {
    pub(super) snapshot: Snapshot,
    pub(super) changes: Changes,
    pub(super) listen: Vec<ListenerConfig>,
    pub(super) admin: Option<AdminSettings>,
    pub(super) addresses: Vec<NamedAddress>,
    pub(super) other: OtherSettings,
}

/// The settings that are neither in the snapshot nor bound.
pub(super) struct OtherSettings {
    pub(super) store: store::StoreSettings,
    pub(super) log: LogSettings,
    pub(super) log_file: OpenedLog,
    pub(super) trail: AuditTrail,
    pub(super) channels: WebhookChannels,
    pub(super) lists: OpenLists,
    pub(super) keys: OpenKeys,
    pub(super) connections: listen::ConnectionSettings,
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
    redis: Option<Arc<dyn StoreRedis>>,
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
            redis: self.redis.clone(),
        };
        task::spawn_blocking(move || reader.read().map(Box::new))
    }
}

impl ConfigReader {
    /// Blocks. To be called within a runtime.
    fn read(self) -> Result<BuiltConfig, ReloadError> {
        let Self { load, previous, sinks, channels, lists, keys, clock, redis } = self;
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
            addresses,
            warnings,
            shown,
        } = load().map_err(ReloadError::Mistakes)?;
        let trail = open_trail(&sinks, &audit, redis.as_ref(), &outputs).map_err(ReloadError::Mistakes)?;
        let log_file = open_log(&sinks, &log, &outputs).map_err(ReloadError::Mistakes)?;
        let channels = sinks.open_channels(&notify, &channels, redis.as_ref());
        let parts = SnapshotParts { policy, clients, upstreams, requests, tracing, tokens, route_series };
        let (lists, keys) = (lists.reopen(followed, &clock), keys.reopen(parts.tokens.as_ref()));
        let snapshot = state::build(parts, &log, &channels, (&lists, &keys), Some(&previous), &sinks);
        let changes = Changes::between(&previous, &snapshot);
        let other =
            OtherSettings { store, log, log_file, trail, channels, lists, keys, connections, files, warnings, shown };
        Ok(BuiltConfig { snapshot, changes, listen, admin, addresses, other })
    }
}

/// Opens the file of the log, unless it is the one in force.
fn open_log(sinks: &Sinks, settings: &LogSettings, outputs: &[OutputFile]) -> Result<OpenedLog, Vec<Diagnostic>> {
    let opened = sinks.log_file().open(settings.file.as_deref());
    opened.map_err(|error| vec![log_mistake(outputs, &error)])
}

// Texts for operators about the configuration and reloads.

/// What is in force of the configuration that was read last, as operators see it.
#[derive(Debug)]
pub(in crate::app) struct InForce {
    shown: ShownConfig,
    warnings: KnownWarnings,
    /// `None`: all of it is in force.
    waiting: Option<WaitingSettings>,
}

impl InForce {
    /// The configuration that the gateway starts with.
    pub(in crate::app) fn of(shown: ShownConfig, warnings: Vec<Diagnostic>) -> Self {
        Self { shown, warnings: KnownWarnings::of(warnings, clock::wall()), waiting: None }
    }

    /// Takes the configuration that comes into force now, but for these keys of its store.
    pub(super) fn renew(&mut self, shown: ShownConfig, warnings: Vec<Diagnostic>, waiting: Vec<&'static str>) {
        self.warnings.renew(warnings, clock::wall());
        if waiting.is_empty() {
            (self.shown, self.waiting) = (shown, None);
            return;
        }
        self.shown = shown.with_store_of(&self.shown, &waiting);
        let before = self.waiting.take().filter(|before| before.keys == waiting);
        self.waiting = before.or_else(|| Some(WaitingSettings { keys: waiting, since: clock::wall() }));
    }

    /// It is loaded now. The first of its files is the configuration itself.
    pub(in crate::app) fn loaded(&self, files: &[WatchedFile]) -> LoadedConfig {
        let source =
            files.first().map_or_else(|| "the command line".to_owned(), |file| file.path.display().to_string());
        LoadedConfig {
            yaml: self.shown.yaml(),
            json: self.shown.json(),
            source,
            loaded: clock::wall(),
            warnings: self.warnings.advice(),
            waiting: self.waiting.clone(),
        }
    }
}

/// The reply to an operator.
pub(super) fn reply(result: &Result<Changes, ReloadError>, in_force: &InForce) -> ReloadReply {
    match result {
        Ok(_) => {
            let waiting = in_force.waiting.as_ref().map(|waiting| waiting.keys.clone()).unwrap_or_default();
            Ok(Reloaded { loaded: clock::wall(), waiting })
        }
        Err(ReloadError::Mistakes(mistakes)) => Err(ReloadRefusal::Mistakes(mistakes.iter().map(mistake).collect())),
        Err(ReloadError::Panic) => Err(ReloadRefusal::Panic),
    }
}

fn mistake(found: &Diagnostic) -> Mistake {
    Mistake {
        file: found.file.to_string_lossy().into_owned(),
        line: found.line,
        column: found.column,
        severity: match found.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
        .to_owned(),
        message: found.message.clone(),
        help: found.help.clone(),
    }
}

// Why the running configuration stays.

/// Why the running configuration stays.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    #[error("{}", count(.0))]
    Mistakes(Vec<Diagnostic>),
    /// A defect, and no reason to stop serving.
    #[error("reading the configuration panicked")]
    Panic,
}

impl ReloadError {
    /// Whether the only mistakes are certificates and keys that do not match: perhaps only one of the two files has
    /// been renewed so far.
    pub(super) fn is_half_renewed(&self) -> bool {
        matches!(self, Self::Mistakes(mistakes) if mistakes.iter().all(|mistake| mistake.is_certificate_mismatch))
    }

    pub(super) fn log(&self) {
        match self {
            Self::Mistakes(mistakes) => {
                log_mistakes(mistakes);
                error!(mistakes = mistakes.len(), "configuration not reloaded, the running one stays in force");
            }
            Self::Panic => error!("configuration not reloaded: reading it panicked, the running one stays in force"),
        }
    }
}

fn count(mistakes: &[Diagnostic]) -> String {
    let (number, plural) = (mistakes.len(), if mistakes.len() == 1 { "" } else { "s" });
    let first = mistakes.first().map(|Diagnostic { file, line, column, message, .. }| {
        format!(", the first at {}:{line}:{column}: {message}", file.display())
    });
    format!("{number} mistake{plural}{}", first.unwrap_or_default())
}
