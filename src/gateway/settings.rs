//! The parts of the configuration that requests meet here.

use std::time::Duration;

/// The part of the `server` and `headers` sections that requests meet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GatewaySettings {
    /// The longest body that passes; `None`: any.
    pub max_body: Option<u64>,
    /// How much of a body a key may read.
    pub inspect_body: usize,
    /// Reading a body without progress.
    pub body_idle: Duration,
    /// The least bytes per second of a body that is awaited, over each `body_idle` after the first; zero: any.
    pub body_rate: u32,
    pub headers: HeaderStyle,
    /// So many delayed and tarpitted requests at a time.
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
