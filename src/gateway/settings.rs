//! The settings for requests.

use std::time::Duration;

/// The settings for requests from the `server` and `headers` sections.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GatewaySettings {
    /// The longest allowed body; `None`: any length.
    pub max_body: Option<u64>,
    /// How much of a body a key may read.
    pub inspect_body: usize,
    /// How long a body may make no progress.
    pub body_idle: Duration,
    /// The lowest allowed rate of a body in bytes per second, measured over each `body_idle` after the first; zero:
    /// any.
    pub body_rate: u32,
    pub headers: HeaderStyle,
    /// Bytes above 0x7f in a target are encoded, where they are UTF-8. Otherwise such a target is refused.
    pub accepts_utf8_targets: bool,
    /// How many delayed and tarpitted requests are held at a time.
    pub max_held: usize,
}

/// Which rate limit headers responses carry.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum HeaderStyle {
    #[default]
    Ietf,
    Legacy,
    Both,
    Off,
}
