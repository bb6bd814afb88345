//! A snapshot out of settings, and what stands beside it: health checks, gauges.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::client::TrustedProxies;
use crate::decision::Policy;
use crate::gateway;
use crate::gateway::Holding;
use crate::gateway::Snapshot;
use crate::listen::Connections;
use crate::record::Gauges;
use crate::record::LogSettings;
use crate::record::Recorder;
use crate::record::ServerNames;
use crate::record::Sinks;
use crate::record::notify::Desks;
use crate::store::AnyStore;
use crate::upstream;
use crate::upstream::Upstream;
use crate::upstream::background_tasks::run_background_tasks;

/// What of the settings requests meet.
#[derive(Debug)]
pub struct Parts {
    pub policy: Policy,
    pub clients: TrustedProxies,
    pub upstreams: Vec<upstream::Settings>,
    pub requests: gateway::Settings,
}

/// Builds what is swapped whole. An upstream that did not change is taken over from `previous`.
pub fn snapshot(
    parts: Parts,
    log: &LogSettings,
    desks: &Desks,
    previous: Option<&Snapshot>,
    sinks: &Sinks,
) -> Snapshot {
    let Parts { policy, clients, upstreams, requests } = parts;
    let known = previous.map_or(&[][..], |snapshot| &snapshot.upstreams);
    let upstreams: Vec<_> = upstreams.into_iter().map(|settings| Upstream::carry_over(settings, known)).collect();
    let recorder = Recorder::new(sinks, log, &policy, upstreams.iter().map(|upstream| names(upstream)));
    let recorder = recorder.with_channels(&policy, desks);
    Snapshot::new(policy, clients, upstreams, requests, recorder)
}

fn names(upstream: &Upstream) -> ServerNames {
    let settings = upstream.settings();
    let servers = settings.servers.iter().map(|server| Arc::from(server.authority.as_str()));
    ServerNames { upstream: Arc::clone(&settings.name), servers: servers.collect() }
}

/// How things stand now.
pub fn gauges(
    snapshot: &Snapshot,
    store: &AnyStore,
    connections: &Connections,
    holding: &Holding,
    sinks: &Sinks,
) -> Gauges {
    let (kind, is_up, keys) = match store {
        // Nothing stands between us and our own memory.
        AnyStore::Memory(memory) => (super::store::MEMORY, true, memory.len()),
        AnyStore::Shared(shared) => {
            let redis = shared.shared();
            (super::store::REDIS, redis.status().up, usize::try_from(redis.keys()).unwrap_or(usize::MAX))
        }
    };
    let servers = snapshot.upstreams.iter().flat_map(|upstream| {
        let name = &upstream.settings().name;
        upstream.settings().servers.iter().map(move |server| {
            let server = server.authority.as_str();
            (Arc::clone(name), Arc::from(server), upstream.is_served_by(server))
        })
    });
    Gauges {
        connections: connections.count(),
        held: holding.count(),
        bans: store.bans().count(),
        store: kind,
        store_up: is_up,
        store_keys: keys,
        servers: servers.collect(),
        dropped_lines: sinks.dropped_lines(),
    }
}

/// What is attended to beside requests, health checks among it: one task for each upstream in force.
#[derive(Debug, Default)]
pub struct Checks(Vec<(Arc<Upstream>, CancellationToken)>);

impl Checks {
    /// Begins with upstreams that are new and ends with those that are gone.
    pub fn follow(&mut self, upstreams: &[Arc<Upstream>]) {
        let gone = self.0.extract_if(.., |(known, _)| !upstreams.iter().any(|upstream| Arc::ptr_eq(known, upstream)));
        for (_, stop) in gone {
            stop.cancel();
        }
        for upstream in upstreams {
            if !self.0.iter().any(|(known, _)| Arc::ptr_eq(known, upstream)) {
                let stop = CancellationToken::new();
                tokio::spawn(run_background_tasks(Arc::clone(upstream), stop.clone()));
                self.0.push((Arc::clone(upstream), stop));
            }
        }
    }
}
