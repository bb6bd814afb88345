//! The `log` section of the configuration.

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LogSettings {
    pub level: tracing::Level,
    /// `None`: human on a terminal, JSON elsewhere.
    pub format: Option<LogFormat>,
    /// Whether each request is logged as a line.
    pub requests: bool,
    /// Whether the line has the query, which may hold secrets.
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
    /// The log data model of OpenTelemetry. Each line is a `LogRecord`.
    Otel,
}

/// The version of the Elastic Common Schema that lines follow.
pub(super) const ECS_VERSION: &str = "8.17.0";
