//! A request's way, from its connection to its log line.

use std::sync::Arc;
use std::time::Duration;

use crate::client::TrustedProxies;
use crate::decision::Policy;
use crate::record::Recorder;
use crate::upstream::Upstream;

/// The part of the `server` and `headers` sections that requests meet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    /// The longest body that passes; `None`: any.
    pub max_body: Option<u64>,
    /// How much of a body a key may read.
    pub inspect_body: usize,
    /// Reading a body without progress.
    pub body_idle: Duration,
    pub headers: HeaderStyle,
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

/// Everything a request needs of the configuration, swapped whole; a request keeps the one it started with.
#[derive(Debug)]
pub struct Snapshot {
    pub policy: Policy,
    pub clients: TrustedProxies,
    /// By `UpstreamId`.
    pub upstreams: Vec<Arc<Upstream>>,
    pub settings: Settings,
    pub recorder: Recorder,
}
