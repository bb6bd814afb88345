//! The bounds of connections.

use std::time::Duration;

/// Open connections keep the settings that they began with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    /// From the first byte of a head, or the start of a connection, to the end of the head.
    pub header: Duration,
    /// Between two requests.
    pub keepalive: Duration,
    /// Reading or writing a body without progress.
    pub body_idle: Duration,
    /// The least bytes per second that a client must read while data waits for it, over each `body_idle` after the first;
    /// zero: no minimum.
    pub body_rate: u32,
    /// How long requests in progress may take once the gateway is stopping.
    pub drain: Duration,
    /// Before that: how long the gateway serves as before, but reports that it is not ready.
    pub lame_duck: Duration,
    pub max_header_bytes: usize,
    pub max_headers: usize,
    /// Zero: as many as descriptors allow.
    pub max_connections: usize,
    /// Zero: no bound.
    pub max_connections_per_client: usize,
    /// Lines of a head over HTTP/1.1 may end in LF without CR.
    pub accepts_bare_line_feeds: bool,
}
