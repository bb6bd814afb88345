//! Values that are read at the moment of a scrape.

use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub struct Gauges {
    pub connections: usize,
    /// Requests that are delayed or tarpitted.
    pub held: usize,
    /// Keys and addresses that are banned.
    pub bans: usize,
    pub store: &'static str,
    pub store_up: bool,
    pub store_keys: usize,
    /// Upstream, server, and whether the server is healthy.
    pub servers: Vec<(Arc<str>, Arc<str>, bool)>,
    pub dropped_lines: u64,
}
