//! What is said about each request: one event, many sinks, never on the request's own time.

pub mod access_log;
pub mod metrics;

use std::time::Duration;

use http::Method;
use http::StatusCode;

use crate::client::Identity;

/// The story of one request, told when it is over.
#[derive(Debug)]
pub struct Event<'a> {
    pub request_id: &'a str,
    pub identity: Identity,
    pub method: &'a Method,
    pub host: &'a str,
    /// As it came, without the query.
    pub path: &'a str,
    pub route: Option<&'a str>,
    pub decision: Outcome,
    /// The limit or list that decided.
    pub limit: Option<&'a str>,
    /// Shadow limits that would have denied.
    pub shadow: &'a [&'a str],
    /// What the client got; `None` when it was gone before.
    pub status: Option<StatusCode>,
    /// The server that answered.
    pub upstream: Option<&'a str>,
    /// Why no server answered, for the log.
    pub error: Option<&'a str>,
    pub duration: Duration,
    pub bytes_in: u64,
    pub bytes_out: u64,
}

/// The word of the log line and of metrics.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Outcome {
    Allowed,
    Denied,
    /// By a deny list or `only`.
    Listed,
    /// Refused before any rule, or not answered by the application.
    Error,
}

impl Outcome {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Listed => "listed",
            Self::Error => "error",
        }
    }
}

/// The `log` section.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LogSettings {
    pub level: tracing::Level,
    pub format: LogFormat,
    /// Whether each request is a line.
    pub requests: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogFormat {
    Human,
    Json,
}
