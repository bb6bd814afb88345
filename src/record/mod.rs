//! What is said about each request: one request, many sinks, never on the request's own time.
//!
//! [`Sinks`] live as long as the process. A [`Recorder`] is compiled from them for each configuration: every name is
//! resolved once, so that a request only formats its line and adds to counters.

pub mod access_log;
pub mod audit;
pub mod event;
pub mod event_bus;
pub mod histogram;
pub mod line;
pub mod log;
pub mod meters;
pub mod metrics;
pub mod names;
pub mod notify;
pub mod recorder;
pub mod stream;
pub mod trace;
pub mod writer;

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use http::StatusCode;
use http::Version;

use crate::client::Identity;
use crate::decision::LimitReport;
use crate::key::KeyHash;
use crate::limit::LimitId;
use crate::outcome::Outcome;
use crate::route::RouteId;
use crate::route::UpstreamId;

pub use self::event::Event;
pub use self::event_bus::EventBus;
pub use self::meters::ServerNames;
pub use self::metrics::Gauges;
pub use self::metrics::Metrics;
pub use self::recorder::Recorder;
pub use self::trace::TraceId;
pub use self::writer::LineWriter;

/// One request, recorded when it is over.
#[derive(Clone, Debug)]
pub struct RequestRecord<'a> {
    pub request_id: &'a str,
    pub identity: Identity,
    pub method: &'a Method,
    pub host: &'a str,
    /// As it came, without the query.
    pub path: &'a str,
    pub query: Option<&'a str>,
    /// `None`: what came was no request.
    pub version: Option<Version>,
    /// Whether the client's own connection is encrypted.
    pub scheme: &'static str,
    /// As it came, whatever bytes that is.
    pub user_agent: Option<&'a [u8]>,
    pub trace: Option<TraceId>,
    pub route: Option<RouteId>,
    pub decision: DecisionLabel,
    /// The limit or list that decided.
    pub limit: Option<&'a str>,
    /// The id of the ban that denies it.
    pub ban: Option<&'a str>,
    /// Every limit that was asked; shadow limits that would have denied are found in here.
    pub limits: &'a [LimitReport],
    /// In how many seconds the client was told to come again.
    pub retry_after: Option<u64>,
    /// What the client got; `None` when it was gone before.
    pub status: Option<StatusCode>,
    /// What the answer meant; `None` where nothing asks for it.
    pub outcome: Option<ObservedOutcome>,
    /// Where it was sent, if it was.
    pub upstream: Option<UpstreamRecord<'a>>,
    /// Why the application did not answer or the request was refused, as a sentence.
    pub error: Option<&'a str>,
    /// From the head of the request to the end of the answer.
    pub duration: Duration,
    /// What the decision took, the store included; `None` when nothing was decided.
    pub decision_duration: Option<Duration>,
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// What a limit did to it, where one did.
    pub applied_limit: Option<&'a AppliedLimit>,
}

/// Whom a limit denied or held.
#[derive(Clone, Debug, PartialEq)]
pub struct AppliedLimit {
    /// The limit that decided.
    pub limit: LimitId,
    /// What it counts the request under; `None` where a part of the key is missing.
    pub key: Option<KeyHash>,
    /// The same for people.
    pub masked_key: Option<MaskedKey>,
    /// For how long it is denied or held, if a wait ends that.
    pub span: Option<Duration>,
    /// A ban begins with it.
    pub is_ban: bool,
    /// It may: that is seen when others are settled, and whom to tell then.
    pub is_suspect: bool,
}

/// A key as people may see it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MaskedKey {
    /// The same on all gateways of a store, and no name for a counter: to count by.
    pub hash: KeyHash,
    /// Each selector and its value, masked.
    pub parts: Vec<(String, String)>,
}

/// What became of a request on its way to an application.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UpstreamRecord<'a> {
    pub id: UpstreamId,
    /// The server that answered, or the last one tried, as the configuration writes it.
    pub server: Option<&'a str>,
    /// Why there was no answer, as a metric label: `connect`, `timeout`, ...
    pub failure: Option<&'static str>,
    /// Servers tried before it, and why not there.
    pub previous_attempts: &'a [(Arc<str>, &'static str)],
}

/// What became of a request: the word of the log line and of metrics.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum DecisionLabel {
    Allowed,
    Denied,
    /// By a ban, which lasts or begins.
    Banned,
    /// By a deny list or `only`.
    Listed,
    /// Held, then forwarded.
    Delayed,
    /// Held, then denied.
    Tarpitted,
    /// Denied, with a way to prove oneself.
    Challenged,
    /// Refused before any rule, or not answered by the application.
    Error,
}

impl DecisionLabel {
    pub const ALL: [Self; 8] = [
        Self::Allowed,
        Self::Denied,
        Self::Banned,
        Self::Listed,
        Self::Delayed,
        Self::Tarpitted,
        Self::Challenged,
        Self::Error,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Banned => "banned",
            Self::Listed => "listed",
            Self::Delayed => "delayed",
            Self::Tarpitted => "tarpitted",
            Self::Challenged => "challenged",
            Self::Error => "error",
        }
    }
}

/// What the application's answer meant, where its route has an `outcome`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ObservedOutcome {
    Known(Outcome),
    /// It reached the application, and what came of that cannot be told: no answer, or none that says enough.
    Unknown,
}

impl ObservedOutcome {
    pub fn outcome(self) -> Option<Outcome> {
        match self {
            Self::Known(outcome) => Some(outcome),
            Self::Unknown => None,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Known(outcome) => outcome.as_str(),
            Self::Unknown => "unknown",
        }
    }
}

/// The `log` section.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LogSettings {
    pub level: tracing::Level,
    /// `None`: for people where a stream is a terminal, for programs where it is not.
    pub format: Option<LogFormat>,
    /// Whether each request is a line.
    pub requests: bool,
    /// Whether the query is part of it, which may hold secrets.
    pub query: bool,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self { level: tracing::Level::INFO, format: None, requests: true, query: false }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogFormat {
    Human,
    Json,
    /// The Elastic Common Schema.
    Ecs,
    /// The log data model of OpenTelemetry, each line a `LogRecord`.
    Otel,
}

/// Where events go, for as long as the process runs. Clones share the sinks.
#[derive(Clone, Debug)]
pub struct Sinks {
    lines: Arc<LineWriter>,
    metrics: Arc<Metrics>,
    event_bus: Arc<EventBus>,
    /// What `format` means where the configuration leaves it out.
    default_format: LogFormat,
}

impl Sinks {
    /// Lines go to `out`, from a thread of their own.
    pub fn new(out: impl Write + Send + 'static, default_format: LogFormat) -> std::io::Result<Self> {
        Ok(Self { lines: LineWriter::start(out)?, default_format, ..Self::discard() })
    }

    /// Counts only; for tests of whatever records.
    pub fn discard() -> Self {
        let lines = Arc::new(LineWriter::detached());
        let (metrics, event_bus) = (Arc::new(Metrics::new()), Arc::new(EventBus::new()));
        Self { lines, metrics, event_bus, default_format: LogFormat::Json }
    }

    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    pub fn event_bus(&self) -> &Arc<EventBus> {
        &self.event_bus
    }

    /// Tells the audit trail and whoever listens of what no request was the cause of. Waits for nobody.
    pub fn publish(&self, event: Event) {
        self.event_bus.publish(&Arc::new(event));
    }

    /// Waits until every line is written, `at_most` so long: a reader that has stopped reading cannot hold the exit.
    pub fn flush(&self, at_most: Duration) {
        self.lines.flush(at_most);
    }

    /// Lines that were dropped because nobody read them fast enough.
    pub fn dropped_lines(&self) -> u64 {
        self.lines.dropped()
    }
}
