//! The operational log: what the gateway reports about itself, on stderr; and the file that both logs may go to.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io, panic};

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::Mutex;
use serde_json::Value;
use tracing::field::{Field, Visit, display};
use tracing::{Event, Level, Subscriber, error, info};
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
use crate::record::{Fault, LogFormat, LogSettings};
use crate::words::clock::Timestamp;
use crate::words::files::LineFile;
use crate::words::{clock, files};

// Starts the operational log and changes its level and format. Libraries do not log: their warnings are about what
// clients send, so a client could fill the log with them.

/// The operational log of the process. Dropping it writes the lines that are still queued.
#[derive(Debug)]
pub struct OperationalLog {
    level: reload::Handle<Targets, Registry>,
    style: Arc<ArcSwap<LineStyle>>,
    default_format: LogFormat,
    _flushed_when_dropped: WorkerGuard,
}

impl OperationalLog {
    /// Sends everything that is logged from now on to `file`, or to stderr where that leads to none. A second call in one
    /// process has no effect.
    pub fn start(settings: &LogSettings, file: &Arc<LogFile>, default_format: LogFormat) -> Self {
        let output = OperationalOutput { file: Arc::clone(file), stderr: io::stderr() };
        let (output, guard) = tracing_appender::non_blocking(output);
        let (level, handle) = reload::Layer::new(from_level(settings.level));
        let style = Arc::new(ArcSwap::from_pointee(LineStyle::of(settings, default_format)));
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(output)
            .with_ansi(false)
            .event_format(AnyFormat::new(Arc::clone(&style)));
        // Fails only where the process has a subscriber already, which then gets the lines.
        drop(tracing_subscriber::registry().with(level).with(lines).try_init());
        log_panics();
        Self { level: handle, style, default_format, _flushed_when_dropped: guard }
    }

    /// Applies changed settings.
    pub fn change(&self, settings: &LogSettings) {
        drop(self.level.modify(|level| *level = from_level(settings.level)));
        self.style.store(Arc::new(LineStyle::of(settings, self.default_format)));
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

/// How each line looks.
#[derive(Debug)]
struct LineStyle {
    format: LogFormat,
    /// Stands in each line.
    gateway: Option<Arc<str>>,
}

impl LineStyle {
    fn of(settings: &LogSettings, default_format: LogFormat) -> Self {
        Self { format: settings.format_or(default_format), gateway: settings.gateway.clone() }
    }
}

/// Formats lines in the configured style, which a reload may change.
struct AnyFormat {
    style: Arc<ArcSwap<LineStyle>>,
    as_text: Format<Compact>,
}

impl AnyFormat {
    fn new(style: Arc<ArcSwap<LineStyle>>) -> Self {
        Self { style, as_text: Format::default().compact().with_target(false).with_ansi(false) }
    }
}

impl<S, N> FormatEvent<S, N> for AnyFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let (at, level) = (clock::wall(), *event.metadata().level());
        let style = self.style.load();
        let message = || LogMessage::of(event).with_gateway(style.gateway.as_deref());
        let line = match style.format {
            LogFormat::Human => {
                let Some(gateway) = &style.gateway else {
                    return self.as_text.format_event(context, writer, event);
                };
                let mut line = String::new();
                self.as_text.format_event(context, Writer::new(&mut line), event)?;
                return writeln!(writer, "{} gateway={gateway}", line.trim_end_matches('\n'));
            }
            LogFormat::Json => message().as_json(at, level),
            LogFormat::Ecs => message().as_ecs(at, level),
            LogFormat::Otel => message().as_otel(at, level),
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

    /// With the name of the gateway, unless the message is about it and has it already.
    pub(super) fn with_gateway(mut self, name: Option<&str>) -> Self {
        if let Some(name) = name
            && self.fields.iter().all(|(field, _)| *field != GATEWAY)
        {
            self.fields.push((GATEWAY, name.into()));
        }
        self
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
            schema_name(&mut line, name, ["client.ip", "error.stack_trace", "service.node.name"]);
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
            schema_name(&mut line, name, ["client.address", "exception.stacktrace", "service.instance.id"]);
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

/// The field with the name of the gateway.
const GATEWAY: &str = "gateway";

/// The name of a field in another schema, and what that calls the fields `client`, `backtrace` and `gateway`.
fn schema_name(line: &mut Vec<u8>, name: &str, [client, backtrace, gateway]: [&str; 3]) {
    match name {
        GATEWAY => raw(line, gateway),
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

// The file of the `log` section. Both logs go there while there is one.

/// The file that lines go to; none: they go to the streams of the process. A reload may change it.
#[derive(Debug, Default)]
pub struct LogFile(ArcSwapOption<Mutex<OpenLog>>);

/// A file that was opened, to be put in force.
#[derive(Clone, Debug, Default)]
pub struct OpenedLog(Option<Arc<Mutex<OpenLog>>>);

#[derive(Debug)]
struct OpenLog {
    file: LineFile,
    /// Why the last write failed, which is logged once.
    failure: Option<LogFailure>,
    /// Lines go there.
    is_in_force: bool,
}

/// The file of a configuration that was refused leaves nothing behind.
impl Drop for OpenLog {
    fn drop(&mut self) {
        if !self.is_in_force {
            self.file.withdraw();
        }
    }
}

/// Why and since when a log cannot be written.
#[derive(Clone, Debug)]
pub(super) struct LogFailure {
    pub(super) why: String,
    pub(super) since: Timestamp,
}

impl LogFailure {
    pub(super) fn of(error: &io::Error) -> Self {
        Self { why: files::describe(error), since: clock::wall() }
    }
}

/// A log file that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the log to {}: {}", path.display(), files::describe(source))]
pub struct LogFileError {
    pub path: PathBuf,
    pub source: io::Error,
}

impl LogFile {
    /// Opens the file at that path, unless it is the one in force, which is kept. [`Self::set`] puts it in force. Blocks.
    pub fn open(&self, path: Option<&Path>) -> Result<OpenedLog, LogFileError> {
        let Some(path) = path else { return Ok(OpenedLog(None)) };
        let kept = self.0.load_full().filter(|log| log.lock().file.path() == path);
        if kept.is_some() {
            return Ok(OpenedLog(kept));
        }
        let file = LineFile::open(path).map_err(|source| LogFileError { path: path.to_owned(), source })?;
        let opened = Arc::new(Mutex::new(OpenLog { file, failure: None, is_in_force: false }));
        Ok(OpenedLog(Some(opened)))
    }

    /// The file that cannot be opened, as far as that shows without opening it.
    pub fn check(settings: &LogSettings) -> Option<LogFileError> {
        let path = settings.file.as_ref()?;
        let source = files::AppendFile::check(path).err()?;
        Some(LogFileError { path: path.clone(), source })
    }

    /// Puts a file in force. Does not wait.
    pub fn set(&self, opened: OpenedLog) {
        if let Some(log) = &opened.0 {
            log.lock().is_in_force = true;
        }
        self.0.store(opened.0);
    }

    /// Opens the file anew. `false`: there is none. Blocks.
    pub fn reopen(&self) -> bool {
        let Some(log) = self.0.load_full() else { return false };
        let reopened = log.lock().file.reopen();
        note(&log, &reopened);
        true
    }

    /// Appends whole lines to the file; `None`: there is none.
    fn write(&self, lines: &[u8]) -> Option<io::Result<()>> {
        let log = self.0.load_full()?;
        let written = log.lock().file.write(lines);
        note(&log, &written);
        Some(written)
    }

    fn is_failing(&self) -> bool {
        self.0.load_full().is_some_and(|log| log.lock().failure.is_some())
    }

    /// What does not work where the file cannot be written.
    pub(super) fn fault(&self) -> Option<Fault> {
        let log = self.0.load_full()?;
        let log = log.lock();
        let LogFailure { why, since } = log.failure.clone()?;
        let path = log.file.path().display();
        let sentence = format!("The log cannot be written to {path}: {why}. Requests are not logged.");
        Some(Fault { about: "log", sentence, since })
    }
}

/// Logs that the file cannot be written, and that it can be again.
fn note(log: &Mutex<OpenLog>, result: &io::Result<()>) {
    let (changed, path) = {
        let mut log = log.lock();
        let before = log.failure.take();
        let was_failing = before.is_some();
        log.failure = result.as_ref().err().map(|error| before.unwrap_or_else(|| LogFailure::of(error)));
        (was_failing != log.failure.is_some(), log.file.path().to_owned())
    };
    let path = path.display();
    match result {
        Ok(()) if changed => info!("the log is written to {path} again"),
        Err(error) if changed => {
            let error = files::describe(error);
            error!(
                error,
                "cannot write the log to {path}: {error}: until it can, requests are not logged, and messages go to standard error"
            );
        }
        _ => {}
    }
}

/// The output of the operational log.
#[derive(Debug)]
struct OperationalOutput {
    file: Arc<LogFile>,
    stderr: io::Stderr,
}

impl Write for OperationalOutput {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // While the file fails, what happens is told on stderr, and in the file too if it takes lines again.
        let was_failing = self.file.is_failing();
        match self.file.write(line) {
            Some(Ok(())) if !was_failing => Ok(line.len()),
            _ => self.stderr.write_all(line).map(|()| line.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stderr.flush()
    }
}

/// The output of the request log.
#[derive(Debug)]
pub(super) struct RequestOutput<W> {
    pub(super) file: Arc<LogFile>,
    pub(super) stream: W,
}

impl<W: Write> Write for RequestOutput<W> {
    /// Whole lines. Those that the file does not take are lost.
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        match self.file.write(lines) {
            Some(written) => written.map(|()| lines.len()),
            None => self.stream.write_all(lines).map(|()| lines.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
