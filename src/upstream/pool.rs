//! The connections of one core to the servers, kept between requests.

use std::sync::Arc;

use super::http2::Http2Pool;
use super::idle::IdleConnections;

/// The connections of one core.
#[derive(Debug, Default)]
pub struct Pool {
    pub(super) idle: Arc<IdleConnections>,
    pub(super) http2: Arc<Http2Pool>,
}

impl Pool {
    pub fn new() -> Self {
        Self::default()
    }
}
