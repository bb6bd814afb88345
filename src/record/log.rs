//! The operational log: what the gateway reports about itself, on stderr.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::sync::Arc;
use std::{fmt, io, panic};

use arc_swap::ArcSwap;
use serde_json::Value;
use tracing::field::{Field, Visit, display};
use tracing::{Event, Level, Subscriber, error};
use tracing_appender::non_blocking::WorkerGuard;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::{Compact, Format, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, reload};

use crate::record::line::{nanos, put, quoted, raw, time};
use crate::record::sinks::ECS_VERSION;
use crate::record::{LogFormat, LogSettings};
use crate::words::clock;
use crate::words::clock::Timestamp;

// Starts the operational log and changes its level and format. Libraries do not log: their warnings are about what
// clients send, so a client could fill the log with them.

/// The operational log of the process. Dropping it writes the lines that are still queued.
#[derive(Debug)]
pub struct OperationalLog {
    level: reload::Handle<Targets, Registry>,
    format: Arc<ArcSwap<LogFormat>>,
    default_format: LogFormat,
    _flushed_when_dropped: WorkerGuard,
}

impl OperationalLog {
    /// Sends everything that is logged from now on to stderr. A second call in one process has no effect.
    pub fn start(settings: &LogSettings, default_format: LogFormat) -> Self {
        let (stderr, guard) = tracing_appender::non_blocking(io::stderr());
        let (level, handle) = reload::Layer::new(from_level(settings.level));
        let format = Arc::new(ArcSwap::from_pointee(settings.format.unwrap_or(default_format)));
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(stderr)
            .with_ansi(false)
            .event_format(AnyFormat::new(Arc::clone(&format)));
        // Fails only where the process has a subscriber already, which then gets the lines.
        drop(tracing_subscriber::registry().with(level).with(lines).try_init());
        log_panics();
        Self { level: handle, format, default_format, _flushed_when_dropped: guard }
    }

    /// Applies changed settings.
    pub fn change(&self, settings: &LogSettings) {
        drop(self.level.modify(|level| *level = from_level(settings.level)));
        self.format.store(Arc::new(settings.format.unwrap_or(self.default_format)));
    }
}

/// The lines of this crate, from that level on.
fn from_level(level: Level) -> Targets {
    Targets::new().with_target(env!("CARGO_CRATE_NAME"), level)
}

/// A panic is a defect that ends one request. It is logged like any other error.
fn log_panics() {
    panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string).unwrap_or_default();
        let payload = panic.payload();
        let literal = payload.downcast_ref::<&str>().copied();
        let message = literal.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or_default();
        let backtrace = Backtrace::capture();
        let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| display(backtrace));
        error!(backtrace, "panicked at {location}: {message}");
    }));
}

/// Formats lines in the configured format, which a reload may change.
struct AnyFormat {
    format: Arc<ArcSwap<LogFormat>>,
    as_text: Format<Compact>,
}

impl AnyFormat {
    fn new(format: Arc<ArcSwap<LogFormat>>) -> Self {
        Self { format, as_text: Format::default().compact().with_target(false).with_ansi(false) }
    }
}

impl<S, N> FormatEvent<S, N> for AnyFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let (at, level) = (clock::wall(), *event.metadata().level());
        let line = match **self.format.load() {
            LogFormat::Human => return self.as_text.format_event(context, writer, event),
            LogFormat::Json => LogMessage::of(event).as_json(at, level),
            LogFormat::Ecs => LogMessage::of(event).as_ecs(at, level),
            LogFormat::Otel => LogMessage::of(event).as_otel(at, level),
        };
        writer.write_str(&String::from_utf8_lossy(&line))
    }
}

// One message of the operational log, in each of the JSON formats.

/// The sentence of a log event, and its fields in order.
#[derive(Debug, Default)]
pub(super) struct LogMessage {
    message: String,
    fields: Vec<(&'static str, Value)>,
}

impl LogMessage {
    pub(super) fn of(event: &Event<'_>) -> Self {
        let mut message = Self::default();
        event.record(&mut message);
        message
    }

    /// `{"time": .., "level": "INFO", "message": .., ..}`
    pub(super) fn as_json(&self, at: Timestamp, level: Level) -> Vec<u8> {
        let mut line = b"{\"time\":\"".to_vec();
        time(&mut line, at);
        raw(&mut line, "\",\"level\":");
        quoted(&mut line, level.as_str());
        raw(&mut line, ",\"message\":");
        quoted(&mut line, &self.message);
        for (name, value) in &self.fields {
            line.push(b',');
            quoted(&mut line, name);
            line.push(b':');
            put(&mut line, value);
        }
        raw(&mut line, "}\n");
        line
    }

    /// In the Elastic Common Schema. Fields that it does not know are put under `portcullis`.
    pub(super) fn as_ecs(&self, at: Timestamp, level: Level) -> Vec<u8> {
        let mut line = b"{\"@timestamp\":\"".to_vec();
        time(&mut line, at);
        raw(&mut line, "\",\"log.level\":");
        quoted(&mut line, &level.as_str().to_ascii_lowercase());
        raw(&mut line, ",\"message\":");
        quoted(&mut line, &self.message);
        raw(&mut line, ",\"ecs.version\":\"");
        raw(&mut line, ECS_VERSION);
        raw(&mut line, "\",\"service.name\":\"portcullis\",\"event.dataset\":\"portcullis.log\"");
        for (name, value) in &self.fields {
            raw(&mut line, ",\"");
            schema_name(&mut line, name, "client.ip", "error.stack_trace");
            raw(&mut line, "\":");
            put(&mut line, value);
        }
        raw(&mut line, "}\n");
        line
    }

    /// As a `LogRecord` of OpenTelemetry.
    pub(super) fn as_otel(&self, at: Timestamp, level: Level) -> Vec<u8> {
        let mut line = b"{\"timeUnixNano\":".to_vec();
        nanos(&mut line, at);
        raw(&mut line, ",\"severityNumber\":");
        put(&mut line, severity(level));
        raw(&mut line, ",\"severityText\":");
        quoted(&mut line, level.as_str());
        raw(&mut line, ",\"body\":{\"stringValue\":");
        quoted(&mut line, &self.message);
        raw(&mut line, "},\"attributes\":[");
        for (position, (name, value)) in self.fields.iter().enumerate() {
            raw(&mut line, if position > 0 { ",{\"key\":\"" } else { "{\"key\":\"" });
            schema_name(&mut line, name, "client.address", "exception.stacktrace");
            raw(&mut line, "\",\"value\":{");
            match value {
                Value::Bool(_) => put(&mut line, format_args!("\"boolValue\":{value}")),
                Value::Number(number) if number.is_f64() => put(&mut line, format_args!("\"doubleValue\":{value}")),
                Value::Number(_) => put(&mut line, format_args!("\"intValue\":\"{value}\"")),
                _ => put(&mut line, format_args!("\"stringValue\":{value}")),
            }
            raw(&mut line, "}}");
        }
        raw(&mut line, "]}\n");
        line
    }

    fn add(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(message)) => self.message = message,
            (name, value) => self.fields.push((name, value)),
        }
    }
}

/// The name of a field in another schema. `client` and `backtrace` are the schema's names for these fields.
fn schema_name(line: &mut Vec<u8>, name: &str, client: &str, backtrace: &str) {
    match name {
        "client" => raw(line, client),
        "error" => raw(line, "error.message"),
        "backtrace" => raw(line, backtrace),
        name => put(line, format_args!("portcullis.{name}")),
    }
}

fn severity(level: Level) -> u8 {
    match level {
        Level::ERROR => 17,
        Level::WARN => 13,
        Level::INFO => 9,
        Level::DEBUG => 5,
        Level::TRACE => 1,
    }
}

impl Visit for LogMessage {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format!("{value:?}").into());
    }
}
