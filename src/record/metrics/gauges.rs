//! Values that are read at the moment of a scrape.

use std::sync::Arc;

use super::ShownRoutes;
use crate::clock::Timestamp;

#[derive(Clone, Debug, Default)]
pub struct Gauges {
    pub connections: usize,
    /// Connections that were closed at once, because their listener does not take their peer. Only grows.
    pub rejected_connections: u64,
    /// Requests that are delayed or tarpitted.
    pub held: usize,
    /// Keys and addresses that are banned.
    pub bans: usize,
    pub sessions: usize,
    pub store: &'static str,
    pub store_up: bool,
    pub store_keys: usize,
    /// Which part of every limit this gateway grants while a shared store is away, from 0 to 1.
    pub store_part: Option<f64>,
    /// Upstream, server, and whether the server is healthy.
    pub servers: Vec<(Arc<str>, Arc<str>, bool)>,
    pub dropped_lines: u64,
    /// Which routes have series of their own.
    pub routes: Arc<ShownRoutes>,
    /// The lists that follow a source.
    pub lists: Vec<ListGauge>,
    /// For each name of the certificates in use, the Unix time at which what is shown for it ends.
    pub certificates: Vec<(String, i64)>,
}

/// How a list that follows a source is.
#[derive(Clone, Debug)]
pub struct ListGauge {
    pub name: Arc<str>,
    /// The URL of the source.
    pub source: String,
    /// How many decisions it has from there.
    pub entries: usize,
    /// When the source answered last.
    pub answered: Option<Timestamp>,
    /// Why the last question was not answered.
    pub failure: Option<Arc<str>>,
}

impl ListGauge {
    /// Whether the source answers.
    pub fn is_up(&self) -> bool {
        self.answered.is_some() && self.failure.is_none()
    }
}
