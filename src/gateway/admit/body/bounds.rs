//! The bounds of a request's body.

use std::time::Duration;

use crate::gateway::settings::GatewaySettings;

/// How long and how slow a body may be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BodyBounds {
    /// `None`: any length.
    pub length: Option<u64>,
    /// How long the client may send nothing.
    pub idle: Duration,
    /// The lowest rate in bytes per second, measured over each `idle` span after the first in which the gateway waits
    /// for the client; zero: any rate.
    pub rate: u32,
}

impl BodyBounds {
    /// The bounds from the configuration.
    pub fn of(settings: &GatewaySettings) -> Self {
        Self { length: settings.max_body, idle: settings.body_idle, rate: settings.body_rate }
    }
}
