//! The `log`, `headers` and `server` sections.

use std::time::Duration;

use super::compiler::Compiler;
use crate::config::raw;
use crate::config::raw::Document;
use crate::config::raw::Field;
use crate::config::raw::Spanned;
use crate::gateway;
use crate::gateway::HeaderStyle;
use crate::listen;
use crate::record::LogFormat;
use crate::record::LogSettings;
use crate::record::RouteSeries;
use crate::units::Size;
use crate::units::Span;

impl Compiler {
    pub(super) fn route_series(document: &Document) -> RouteSeries {
        let routes = document.metrics.get().and_then(|metrics| metrics.routes.get());
        routes.map(|routes| routes.value).unwrap_or_default()
    }

    pub(super) fn log(document: &Document) -> LogSettings {
        let Some(log) = document.log.get() else { return LogSettings::default() };
        LogSettings {
            level: match log.level.get().map(|level| level.value) {
                Some(raw::server::Level::Error) => tracing::Level::ERROR,
                Some(raw::server::Level::Warn) => tracing::Level::WARN,
                Some(raw::server::Level::Debug) => tracing::Level::DEBUG,
                Some(raw::server::Level::Trace) => tracing::Level::TRACE,
                Some(raw::server::Level::Info) | None => tracing::Level::INFO,
            },
            format: log.format.get().map(|format| match format.value {
                raw::server::Format::Json => LogFormat::Json,
                raw::server::Format::Ecs => LogFormat::Ecs,
                raw::server::Format::Otel => LogFormat::Otel,
                raw::server::Format::Human => LogFormat::Human,
            }),
            requests: log.requests.get().is_none_or(|requests| requests.value),
            query: log.query.get().is_some_and(|query| query.value),
        }
    }

    pub(super) fn connections(&mut self, document: &Document) -> listen::Settings {
        let mut settings = listen::Settings {
            header: Duration::from_secs(10),
            keepalive: Duration::from_secs(75),
            body_idle: Duration::from_secs(30),
            body_rate: 100,
            drain: Duration::from_secs(30),
            lame_duck: Duration::ZERO,
            max_header_bytes: 64 << 10,
            max_headers: 100,
            max_connections: 0,
            max_connections_per_client: 0,
            accepts_bare_line_feeds: accepts(document, raw::server::Accept::BareLf),
        };
        let Some(server) = document.server.get() else { return settings };
        if let Some(timeouts) = server.timeouts.get() {
            settings.header = self.span(&timeouts.header, settings.header);
            settings.keepalive = self.span(&timeouts.keepalive, settings.keepalive);
            settings.body_idle = self.span(&timeouts.body_idle, settings.body_idle);
            if let Some(Spanned { value, at }) = timeouts.body_rate.get() {
                let rate = self.within(*value, *at, BODY_RATE, |rate| rate.to_string());
                settings.body_rate = u32::try_from(rate).unwrap_or_default();
            }
            // Zero is allowed: the gateway stops at once.
            settings.drain = timeouts.drain.get().map_or(settings.drain, |drain| drain.value.0);
            if let Some(Spanned { value: Span(lame_duck), at }) = timeouts.lame_duck.get() {
                if *lame_duck > LONGEST_LAME_DUCK {
                    let message = "`lame_duck` is too long: the gateway would run that long after it was told to stop";
                    self.mistakes.report(*at, message, "write at most `1h`; load balancers notice within seconds");
                }
                settings.lame_duck = *lame_duck;
            }
        }
        if let Some(Spanned { value: Size(bytes), at }) = server.max_header_bytes.get() {
            settings.max_header_bytes = self.within(*bytes, *at, HEADER_BYTES, |bytes| Size(bytes).to_string());
        }
        if let Some(Spanned { value, at }) = server.max_headers.get() {
            settings.max_headers = self.within(*value, *at, HEADERS, |count| count.to_string());
        }
        settings.max_connections = self.bound(&server.max_connections);
        settings.max_connections_per_client = self.bound(&server.max_connections_per_client);
        settings
    }

    pub(super) fn requests(&mut self, document: &Document, connections: &listen::Settings) -> gateway::GatewaySettings {
        let mut settings = gateway::GatewaySettings {
            max_body: None,
            inspect_body: 64 << 10,
            body_idle: connections.body_idle,
            body_rate: connections.body_rate,
            headers: match document.headers.get().map(|headers| headers.value) {
                Some(raw::server::HeaderStyle::Legacy) => HeaderStyle::Legacy,
                Some(raw::server::HeaderStyle::Both) => HeaderStyle::Both,
                Some(raw::server::HeaderStyle::Off) => HeaderStyle::Off,
                Some(raw::server::HeaderStyle::Ietf) | None => HeaderStyle::Ietf,
            },
            accepts_utf8_targets: accepts(document, raw::server::Accept::Utf8Target),
            max_held: 10_000,
        };
        let Some(server) = document.server.get() else { return settings };
        settings.max_body = server.max_body.get().map(|size| size.value.0).filter(|bytes| *bytes > 0);
        if let Some(Spanned { value: Size(bytes), at }) = server.inspect_body.get() {
            settings.inspect_body = self.within(*bytes, *at, INSPECTED_BYTES, |bytes| Size(bytes).to_string());
        }
        if let Some(Spanned { value, at }) = server.max_held.get() {
            settings.max_held = self.within(*value, *at, HELD, |count| count.to_string());
        }
        settings
    }

    /// A bound where zero means none.
    fn bound(&mut self, field: &Field<Spanned<u64>>) -> usize {
        field.get().map_or(0, |Spanned { value, at }| self.size(*value, *at))
    }

    fn within(
        &mut self,
        value: u64,
        at: crate::config::source::SourceRange,
        (least, most): (u64, u64),
        show: impl Fn(u64) -> String,
    ) -> usize {
        if !(least..=most).contains(&value) {
            let help = format!("write `{}` to `{}`", show(least), show(most));
            let message = format!("`{}` is too {}", show(value), if value < least { "small" } else { "large" });
            self.mistakes.report(at, message, help);
            return self.size(least, at);
        }
        self.size(value, at)
    }
}

/// Whether `server.accept` has this word.
fn accepts(document: &Document, what: raw::server::Accept) -> bool {
    let accepted = document.server.get().and_then(|server| server.accept.get());
    accepted.is_some_and(|accepted| accepted.items.iter().any(|word| word.value == what))
}

/// Bytes per second. Many ordinary connections are slower than the maximum.
const BODY_RATE: (u64, u64) = (0, 1_000_000);

/// Longer than any load balancer takes to notice.
const LONGEST_LAME_DUCK: Duration = Duration::from_secs(60 * 60);

/// The minimum is needed for the request of a browser. More than the maximum belongs in a body.
const HEADER_BYTES: (u64, u64) = (1 << 10, 1 << 20);

/// The maximum is the most that one request can have at all.
const HEADERS: (u64, u64) = (1, 10_000);

/// Each held request keeps its connection and a few KiB. Zero is allowed: requests beyond the bound are denied.
const HELD: (u64, u64) = (0, 1_000_000);

/// Each request under way may take as much memory.
const INSPECTED_BYTES: (u64, u64) = (1, 64 << 20);
