//! Gauges of the metrics: how things stand when they are asked for.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::followed_lists::OpenLists;
use super::live_snapshot::LiveSnapshot;
use super::store;
use crate::gateway::HeldRequests;
use crate::gateway::Snapshot;
use crate::listen::Connections;
use crate::record::Gauges;
use crate::record::Sinks;
use crate::store::AnyStore;

/// A function that reads the gauges each time it is called.
pub(super) fn gauge_reader(
    live: &LiveSnapshot,
    store: &Arc<AnyStore>,
    connections: &Connections,
    held_requests: &HeldRequests,
    lists: &Arc<ArcSwap<OpenLists>>,
    sinks: &Sinks,
) -> Box<dyn Fn() -> Gauges + Send + Sync> {
    let (live, store, connections, held_requests, lists, sinks) = (
        live.shared(),
        Arc::clone(store),
        connections.clone(),
        held_requests.clone(),
        Arc::clone(lists),
        sinks.clone(),
    );
    Box::new(move || gauges(&live.load(), &store, &connections, &held_requests, &lists.load(), &sinks))
}

fn gauges(
    snapshot: &Snapshot,
    store: &AnyStore,
    connections: &Connections,
    held_requests: &HeldRequests,
    lists: &OpenLists,
    sinks: &Sinks,
) -> Gauges {
    let (kind, is_up, keys, part) = match store {
        // The memory of this process is always up, and grants the whole.
        AnyStore::Memory(memory) => (store::MEMORY, true, memory.len(), None),
        AnyStore::Shared(shared) => {
            let redis = shared.shared();
            let keys = usize::try_from(redis.keys()).unwrap_or(usize::MAX);
            (store::REDIS, redis.status().up, keys, Some(redis.part().as_fraction()))
        }
    };
    let servers = snapshot.upstreams.iter().flat_map(|upstream| {
        let name = &upstream.settings().name;
        upstream.settings().servers.iter().map(move |server| {
            let server = server.name();
            (Arc::clone(name), Arc::from(server), upstream.is_served_by(server))
        })
    });
    Gauges {
        connections: connections.count(),
        rejected_connections: connections.rejected(),
        held: held_requests.count(),
        bans: store.bans().count(),
        sessions: store.sessions().count(),
        store: kind,
        store_up: is_up,
        store_keys: keys,
        store_part: part,
        servers: servers.collect(),
        routes: Arc::clone(snapshot.recorder.shown_routes()),
        lists: lists.gauges(),
        dropped_lines: sinks.dropped_lines(),
        certificates: Vec::new(),
    }
}
