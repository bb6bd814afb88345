//! Discovers which server of a cluster has which slot.

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::Value;
use tokio::task::JoinSet;
use tokio::time;
use tokio::time::Instant;
use tracing::warn;

use super::shared::SharedRedis;
use crate::store::redis::topology::node::{SLOTS, SlotRange};
use crate::store::redis::transport::connect::Address;
use crate::store::redis::transport::connection::RedisConnection;
use crate::store::redis::transport::fault::ServerFault;

/// How often the map is fetched while all servers are up.
const ROUND: Duration = Duration::from_secs(15);

/// The same while a server is down, or after a redirection.
const TROUBLED_ROUND: Duration = Duration::from_millis(250);

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// The cluster as one server sees it.
#[derive(Debug, Default, Eq, PartialEq)]
struct ClusterView {
    ranges: Vec<SlotRange>,
    replicas: Vec<Address>,
}

/// A connection to a server that is asked for its view.
#[derive(Clone, Debug)]
struct ClusterLink {
    address: Address,
    connection: RedisConnection,
}

/// Keeps the map up to date for ever.
pub(in crate::store::redis) async fn follow(shared: Arc<SharedRedis>) {
    let (mut links, mut is_in_doubt, mut warned) = (Vec::new(), true, false);
    loop {
        let begun = Instant::now();
        match view(&shared, &mut links, is_in_doubt).await {
            Ok(view) => {
                warned = false;
                shared.topology.install_ranges(&view.ranges, view.replicas);
            }
            Err(fault) if !warned => {
                warned = true;
                warn!(detail = %fault, "no server of the redis cluster answers CLUSTER SLOTS: {fault}");
            }
            Err(_) => {}
        }
        shared.is_discovered.store(true, Ordering::Release);
        shared.notify();
        let is_well = shared.topology.map().masters.iter().all(|node| node.is_up());
        let pause = if is_well && !warned { ROUND } else { TROUBLED_ROUND };
        is_in_doubt = time::timeout(pause, shared.topology.refresh.notified()).await.is_ok() || !is_well;
        time::sleep_until(begun + TROUBLED_ROUND).await;
    }
}

/// The view of the server that was asked last, or the best view of all servers when the map is in doubt.
async fn view(
    shared: &Arc<SharedRedis>,
    links: &mut Vec<ClusterLink>,
    is_in_doubt: bool,
) -> Result<ClusterView, ServerFault> {
    links.retain(|link| link.connection.is_open());
    if !is_in_doubt
        && let Some(link) = links.first()
        && let Ok(view) = link.ask().await
    {
        links.truncate(1);
        return Ok(view);
    }
    let (down, others) = known(shared);
    let (mut views, mut fault) = ask_all(shared, links, others).await;
    if views.is_empty() && !down.is_empty() {
        (views, fault) = ask_all(shared, links, down).await;
    }
    let agreeing = |view: &ClusterView| views.iter().filter(|(other, _)| other.ranges == view.ranges).count();
    // A view that leaves slots without a server, or with one that is known to be down, is outdated.
    let worth = |place: &usize| (Reverse(missing(shared, &views[*place].0)), agreeing(&views[*place].0));
    let best = (0..views.len()).max_by_key(worth).ok_or(fault)?;
    let (view, link) = views.swap_remove(best);
    *links = views.into_iter().map(|(_, link)| link).collect();
    links.insert(0, link);
    Ok(view)
}

/// Asks these servers at the same time, over existing connections where there are any. Returns their views, and the
/// last fault of the servers that did not answer.
async fn ask_all(
    shared: &Arc<SharedRedis>,
    links: &[ClusterLink],
    addresses: Vec<Address>,
) -> (Vec<(ClusterView, ClusterLink)>, ServerFault) {
    let mut asking = JoinSet::new();
    for address in addresses {
        let link = links.iter().find(|link| link.address == address).cloned();
        let shared = Arc::clone(shared);
        asking.spawn(async move {
            let link = match link {
                Some(link) => link,
                None => ClusterLink { connection: shared.connector.connect(&address).await?, address },
            };
            Ok::<_, ServerFault>((link.ask().await?, link))
        });
    }
    let (mut views, mut fault) = (Vec::new(), ServerFault::timeout());
    for answer in asking.join_all().await {
        match answer {
            Ok(view) => views.push(view),
            Err(failed) => fault = failed,
        }
    }
    (views, fault)
}

/// Every known server, each once: the masters that are down, and all others.
fn known(shared: &SharedRedis) -> (Vec<Address>, Vec<Address>) {
    let map = shared.topology.map();
    let (up, down): (Vec<_>, Vec<_>) = map.masters.iter().partition(|node| node.is_up());
    let down: Vec<Address> = down.iter().map(|node| node.address.clone()).collect();
    let configured = shared.settings.urls.iter().map(|url| &url.address);
    let mut known = Vec::new();
    for address in up.iter().map(|node| &node.address).chain(&map.replicas).chain(configured) {
        if !known.contains(address) && !down.contains(address) {
            known.push(address.clone());
        }
    }
    (down, known)
}

/// How many slots are without a server that is up, according to this view.
fn missing(shared: &SharedRedis, view: &ClusterView) -> usize {
    let map = shared.topology.map();
    let is_down = |address: &Address| map.masters.iter().any(|node| node.address == *address && !node.is_up());
    let served = view.ranges.iter().filter(|range| !is_down(&range.master));
    let served: usize = served.map(|range| usize::from(range.last - range.first) + 1).sum();
    usize::from(SLOTS).saturating_sub(served)
}

impl ClusterLink {
    async fn ask(&self) -> Result<ClusterView, ServerFault> {
        let mut slots = redis::cmd("CLUSTER");
        slots.arg("SLOTS");
        let answer =
            time::timeout(PATIENCE, self.connection.ask(&slots)).await.map_err(|_| ServerFault::timeout())??;
        read(&answer, &self.address).ok_or_else(ServerFault::nonsense)
    }
}

/// Reads `[[first, last, [host, port, ..] of the master, those of replicas..]..]`, the answer of the server at `by`.
fn read(answer: &Value, by: &Address) -> Option<ClusterView> {
    let Value::Array(rows) = answer else { return None };
    let mut view = ClusterView::default();
    for row in rows {
        let Value::Array(row) = row else { return None };
        let [Value::Int(first), Value::Int(last), master, replicas @ ..] = row.as_slice() else { return None };
        let slot = |number: &i64| u16::try_from(*number).ok().filter(|slot| *slot < SLOTS);
        let (first, last) = (slot(first)?, slot(last)?);
        if first > last {
            return None;
        }
        view.ranges.push(SlotRange { first, last, master: server(master, by)? });
        for replica in replicas.iter().filter_map(|replica| server(replica, by)) {
            if !view.replicas.contains(&replica) {
                view.replicas.push(replica);
            }
        }
    }
    view.ranges.sort_by_key(|range| range.first);
    // A server that has not joined a cluster yet has no view.
    (!view.ranges.is_empty()).then_some(view)
}

fn server(value: &Value, by: &Address) -> Option<Address> {
    let Value::Array(parts) = value else { return None };
    let [host, Value::Int(port), ..] = parts.as_slice() else { return None };
    let port = u16::try_from(*port).ok()?;
    let host = match host {
        Value::BulkString(host) => str::from_utf8(host).ok()?,
        Value::SimpleString(host) => host,
        _ => "",
    };
    // A server that does not know its own name is at the address where it was asked.
    Some(by.at(if host.is_empty() || host == "?" { by.host() } else { host }, port))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn by() -> Address {
        Address::Tcp { host: "10.0.0.9".to_owned(), port: 7000, tls: true }
    }

    fn row(first: i64, last: i64, servers: &[(Value, i64)]) -> Value {
        let servers = servers.iter().map(|(host, port)| Value::Array(vec![host.clone(), Value::Int(*port)]));
        Value::Array([Value::Int(first), Value::Int(last)].into_iter().chain(servers).collect())
    }

    fn host(name: &str) -> Value {
        Value::BulkString(name.into())
    }

    #[test]
    fn a_map_is_read_with_its_replicas() {
        let rows = [
            row(0, 5460, &[(host("10.0.0.1"), 7001), (host("10.0.0.2"), 7002)]),
            row(5461, 16_383, &[(host(""), 7003), (host("10.0.0.2"), 7002)]),
        ];
        let view = read(&Value::Array(rows.into()), &by()).expect("a map");
        assert_eq!(view.ranges[0], SlotRange { first: 0, last: 5460, master: by().at("10.0.0.1", 7001) });
        assert_eq!(view.ranges[1].master, by().at("10.0.0.9", 7003), "unnamed: on the host that was asked");
        assert_eq!(view.replicas, [by().at("10.0.0.2", 7002)]);
    }

    #[test]
    fn what_is_no_map_is_refused() {
        let odd = [
            Value::Nil,
            Value::Array(Vec::new()),
            Value::Array(vec![Value::Int(1)]),
            Value::Array(vec![row(0, 16_384, &[(host("a"), 1)])]),
            Value::Array(vec![row(9, 8, &[(host("a"), 1)])]),
            Value::Array(vec![row(0, 1, &[])]),
            Value::Array(vec![row(0, 1, &[(host("a"), 70_000)])]),
        ];
        for answer in odd {
            assert_eq!(read(&answer, &by()), None, "{answer:?}");
        }
    }

    proptest! {
        #[test]
        fn any_map_that_is_read_has_its_ranges_in_order(
            rows in prop::collection::vec((prop_oneof![any::<i64>(), -2..16_400_i64], -2..16_400_i64, any::<i64>()), 0..5),
        ) {
            let rows = rows.into_iter().map(|(first, last, port)| row(first, last, &[(host("a"), port), (host("?"), port)]));
            if let Some(view) = read(&Value::Array(rows.collect()), &by()) {
                prop_assert!(view.ranges.iter().all(|range| range.first <= range.last && range.last < SLOTS));
                prop_assert!(view.ranges.is_sorted_by_key(|range| range.first));
            }
        }
    }
}
