//! The counters of the servers of one upstream.

use std::sync::Arc;

use prometheus_client::metrics::counter::Counter;

use super::Metrics;
use crate::record::UpstreamRecord;

/// The names of an upstream and its servers, as the configuration writes them.
#[derive(Clone, Debug)]
pub struct ServerNames {
    pub upstream: Arc<str>,
    pub servers: Vec<Arc<str>>,
}

#[derive(Debug)]
pub(in crate::record) struct UpstreamMetrics {
    pub(in crate::record) name: Arc<str>,
    /// Usually a few, so a linear search is quicker than hashing a name.
    servers: Vec<(Arc<str>, Counter)>,
}

impl UpstreamMetrics {
    pub(in crate::record) fn new(metrics: &Metrics, names: ServerNames) -> Self {
        let ServerNames { upstream, servers } = names;
        let counters = servers.into_iter().map(|server| {
            let counter = metrics.upstream_requests(&upstream, &server);
            (server, counter)
        });
        Self { servers: counters.collect(), name: upstream }
    }

    pub(in crate::record) fn count(&self, metrics: &Metrics, record: UpstreamRecord<'_>) {
        let server = record.server.unwrap_or_default();
        if let Some((_, counter)) = self.servers.iter().find(|(name, _)| **name == *server) {
            counter.inc();
        }
        if let Some(cause) = record.failure {
            metrics.upstream_errors(&self.name, server, cause).inc();
        }
        for (server, cause) in record.previous_attempts {
            metrics.upstream_errors(&self.name, server, cause).inc();
        }
    }
}
