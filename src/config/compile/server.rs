//! The `gateway`, `log`, `headers` and `server` sections.

use std::sync::Arc;
use std::time::Duration;

use crate::admin::{AdminSettings, Token};
use crate::config::compile::document::{Compiler, NamedFile};
use crate::config::compile::listen::ListenEntry;
use crate::config::raw;
use crate::config::raw::{Bounds, Document, Field, Spanned, Text, grammar};
use crate::record::audit::AuditSettings;
use crate::record::{LogSettings, RouteSeries};
use crate::words::units::{Size, Span};
use crate::{gateway, listen};

const LONGEST_LAME_DUCK: Duration = grammar::LAME_DUCK.longest().0;

/// Whether `server.accept` has this word.
fn accepts(document: &Document, what: raw::server::Accept) -> bool {
    let accepted = document.server.get().and_then(|server| server.accept.get());
    accepted.is_some_and(|accepted| accepted.items.iter().any(|word| word.value == what))
}

// The `admin` section.

impl Compiler {
    pub(super) fn route_series(document: &Document) -> RouteSeries {
        let routes = document.metrics.get().and_then(|metrics| metrics.routes.get());
        routes.map(|routes| routes.value).unwrap_or_default()
    }

    /// To be called after [`Self::audit`], whose file is another one.
    pub(super) fn log(&mut self, document: &Document, audit: &AuditSettings) -> LogSettings {
        let name = document.gateway.get().and_then(|gateway| gateway.name.get());
        let gateway = name.and_then(|name| self.name(name));
        let Some(log) = document.log.get() else { return LogSettings { gateway, ..LogSettings::default() } };
        let file = log.file.get().and_then(|text| self.output_of_lines(text));
        if let Some(text) = log.file.get()
            && let Some(key) = [("file", &audit.file), ("sqlite", &audit.sqlite)]
                .into_iter()
                .find_map(|(key, path)| (path.is_some() && *path == file).then_some(key))
        {
            let message = format!("`log.file` and `audit.{key}` are the same file");
            self.mistakes.report(text.at, message, "give one of the two another path");
        }
        LogSettings {
            file,
            gateway,
            level: log.level.get().map_or(LogSettings::DEFAULT.level, |level| level.value.traced()),
            format: log.format.get().map(|format| format.value),
            requests: log.requests.get().map_or(LogSettings::DEFAULT.requests, |requests| requests.value),
            query: log.query.get().map_or(LogSettings::DEFAULT.query, |query| query.value),
        }
    }

    pub(super) fn connections(&mut self, document: &Document) -> listen::ConnectionSettings {
        let mut settings = listen::ConnectionSettings {
            accepts_bare_line_feeds: accepts(document, raw::server::Accept::BareLf),
            ..listen::ConnectionSettings::DEFAULT
        };
        let Some(server) = document.server.get() else { return settings };
        if let Some(timeouts) = server.timeouts.get() {
            settings.header = self.span(&timeouts.header, settings.header);
            settings.keepalive = self.span(&timeouts.keepalive, settings.keepalive);
            settings.body_idle = self.span(&timeouts.body_idle, settings.body_idle);
            if let Some(Spanned { value, at }) = timeouts.body_rate.get() {
                let rate = self.within(*value, *at, grammar::BODY_RATE, |rate| rate.to_string());
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
            settings.max_header_bytes =
                self.within(*bytes, *at, grammar::HEADER_BYTES, |bytes| Size(bytes).to_string());
        }
        if let Some(Spanned { value, at }) = server.max_headers.get() {
            settings.max_headers = self.within(*value, *at, grammar::HEADERS, |count| count.to_string());
        }
        settings.max_connections = self.bound(&server.max_connections);
        settings.max_connections_per_client = self.bound(&server.max_connections_per_client);
        settings
    }

    pub(super) fn requests(
        &mut self,
        document: &Document,
        connections: &listen::ConnectionSettings,
    ) -> gateway::GatewaySettings {
        let mut settings = gateway::GatewaySettings {
            max_body: None,
            inspect_body: gateway::GatewaySettings::INSPECT_BODY,
            body_idle: connections.body_idle,
            body_rate: connections.body_rate,
            headers: document.headers.get().map(|headers| headers.value).unwrap_or_default(),
            accepts_utf8_targets: accepts(document, raw::server::Accept::Utf8Target),
            max_held: gateway::GatewaySettings::MAX_HELD,
            pages: Arc::new(self.pages(document)),
        };
        let Some(server) = document.server.get() else { return settings };
        settings.max_body = server.max_body.get().map(|size| size.value.0).filter(|bytes| *bytes > 0);
        if let Some(Spanned { value: Size(bytes), at }) = server.inspect_body.get() {
            settings.inspect_body = self.within(*bytes, *at, grammar::INSPECTED_BYTES, |bytes| Size(bytes).to_string());
        }
        if let Some(Spanned { value, at }) = server.max_held.get() {
            settings.max_held = self.within(*value, *at, grammar::HELD, |count| count.to_string());
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
        bounds: Bounds,
        show: impl Fn(u64) -> String,
    ) -> usize {
        let Bounds { least, most } = bounds;
        if !bounds.contain(value) {
            let help = format!("write `{}` to `{}`", show(least), show(most));
            let message = format!("`{}` is too {}", show(value), if value < least { "small" } else { "large" });
            self.mistakes.report(at, message, help);
            return self.size(least, at);
        }
        self.size(value, at)
    }
}

impl Compiler {
    pub(super) fn admin(&mut self, document: &Document, listen: &[ListenEntry]) -> Option<AdminSettings> {
        let admin = document.admin.get()?;
        let token = admin.token_file.get().and_then(|file| self.token(file));
        let Spanned { value: address, at } = *admin.address.get()?;
        if !address.ip().to_canonical().is_loopback() && admin.token_file.is_absent() {
            self.mistakes.report(
                at,
                format!("`{address}` can be reached from other machines, and there is no `token_file`"),
                format!(
                    "write `127.0.0.1:{}`, or add `token_file:` with a file that holds a secret token",
                    address.port()
                ),
            );
        }
        if address.port() != 0 && listen.iter().any(|other| other.address.value == address.into()) {
            self.mistakes.report(
                at,
                format!("`{address}` is in `listen` too"),
                "the admin listener needs a port of its own, such as `127.0.0.1:9090`",
            );
        }
        self.note_address(address.into(), at);
        Some(AdminSettings { address, token })
    }

    /// Reads the file with the admin token. No message shows its content.
    fn token(&mut self, file: &Text) -> Option<Token> {
        let NamedFile { path, content } = self.file(file, "token")?;
        let lines = content.lines().filter(|line| !line.trim().is_empty()).count();
        let message = match lines {
            0 => format!("the token file `{}` is empty", file.value),
            1 => {
                self.warn_of_readers(file, &path, "token");
                self.warn_of_token(file, &path, &content);
                return Token::new(&content);
            }
            _ => format!("the token file `{}` has several lines", file.value),
        };
        self.mistakes.report(file.at, message, "write one line into it, for example from `openssl rand -hex 32`");
        None
    }
}
