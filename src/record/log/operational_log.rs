//! Starts the operational log and changes its level and format. Libraries do not log: their warnings are about what
//! clients send, so a client could fill the log with them.

use std::backtrace::Backtrace;
use std::backtrace::BacktraceStatus;
use std::fmt;
use std::io;
use std::panic;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tracing::Event;
use tracing::Level;
use tracing::Subscriber;
use tracing::error;
use tracing::field::display;
use tracing_appender::non_blocking::WorkerGuard;
use tracing_subscriber::Registry;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::FormatEvent;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Compact;
use tracing_subscriber::fmt::format::Format;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;

use super::message::LogMessage;
use crate::clock;
use crate::record::LogFormat;
use crate::record::LogSettings;

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
