//! Which server of a cluster has which slot, as its servers tell.

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::Value;
use tokio::task::JoinSet;
use tokio::time;
use tokio::time::Instant;
use tracing::warn;

use super::map::Range;
use super::map::SLOTS;
use super::shared::SharedRedis;
use crate::store::redis::transport::connect::Connection;
use crate::store::redis::transport::fault::Fault;
use crate::store::redis::transport::url::Address;

/// How often the map is asked for when nothing is amiss.
const ROUND: Duration = Duration::from_secs(15);

/// The same while a server is down, or a slot was not where it should be.
const TROUBLED_ROUND: Duration = Duration::from_millis(250);

/// How long a server may take to tell.
const PATIENCE: Duration = Duration::from_millis(500);

/// What one server thinks of all.
#[derive(Debug, Default, Eq, PartialEq)]
struct View {
    ranges: Vec<Range>,
    replicas: Vec<Address>,
}

/// A connection to a server that tells.
#[derive(Clone, Debug)]
struct Line {
    address: Address,
    connection: Connection,
}

/// Keeps the map for good.
pub(in crate::store::redis) async fn follow(shared: Arc<SharedRedis>) {
    let (mut lines, mut doubted, mut warned) = (Vec::new(), true, false);
    loop {
        let begun = Instant::now();
        match view(&shared, &mut lines, doubted).await {
            Ok(view) => {
                warned = false;
                shared.topology.install_ranges(&view.ranges, view.replicas);
            }
            Err(fault) if !warned => {
                warned = true;
                warn!(detail = %fault, "no server of the redis cluster tells which slots are where: {fault}");
            }
            Err(_) => {}
        }
        shared.surveyed.store(true, Ordering::Release);
        shared.tell();
        let is_well = shared.topology.map().masters.iter().all(|node| node.is_up());
        let pause = if is_well && !warned { ROUND } else { TROUBLED_ROUND };
        doubted = time::timeout(pause, shared.topology.doubted.notified()).await.is_ok() || !is_well;
        time::sleep_until(begun + TROUBLED_ROUND).await;
    }
}

/// What the server that was asked last thinks, or, when something is amiss, the best of what all think.
async fn view(shared: &Arc<SharedRedis>, lines: &mut Vec<Line>, doubted: bool) -> Result<View, Fault> {
    lines.retain(|line| line.connection.is_open());
    if !doubted
        && let Some(line) = lines.first()
        && let Ok(view) = line.ask().await
    {
        lines.truncate(1);
        return Ok(view);
    }
    let (away, known) = known(shared);
    let (mut views, mut fault) = ask_all(shared, lines, known).await;
    if views.is_empty() && !away.is_empty() {
        (views, fault) = ask_all(shared, lines, away).await;
    }
    let agreeing = |view: &View| views.iter().filter(|(other, _)| other.ranges == view.ranges).count();
    // Who has slots with nobody, or with a server that is known to be away, has not heard of a change yet.
    let worth = |place: &usize| (Reverse(missing(shared, &views[*place].0)), agreeing(&views[*place].0));
    let best = (0..views.len()).max_by_key(worth).ok_or(fault)?;
    let (view, line) = views.swap_remove(best);
    *lines = views.into_iter().map(|(_, line)| line).collect();
    lines.insert(0, line);
    Ok(view)
}

/// Asks these at the same time, over the connections there are to them. Beside what they tell, why the last of the
/// others tells nothing.
async fn ask_all(shared: &Arc<SharedRedis>, lines: &[Line], addresses: Vec<Address>) -> (Vec<(View, Line)>, Fault) {
    let mut asking = JoinSet::new();
    for address in addresses {
        let line = lines.iter().find(|line| line.address == address).cloned();
        let shared = Arc::clone(shared);
        asking.spawn(async move {
            let line = match line {
                Some(line) => line,
                None => Line { connection: shared.connector.connect(&address).await?, address },
            };
            Ok::<_, Fault>((line.ask().await?, line))
        });
    }
    let (mut views, mut fault) = (Vec::new(), Fault::timeout());
    for told in asking.join_all().await {
        match told {
            Ok(told) => views.push(told),
            Err(failed) => fault = failed,
        }
    }
    (views, fault)
}

/// Every server heard of, each once: the masters that are away, and the others.
fn known(shared: &SharedRedis) -> (Vec<Address>, Vec<Address>) {
    let map = shared.topology.map();
    let (up, away): (Vec<_>, Vec<_>) = map.masters.iter().partition(|node| node.is_up());
    let away: Vec<Address> = away.iter().map(|node| node.address.clone()).collect();
    let configured = shared.settings.urls.iter().map(|url| &url.address);
    let mut known = Vec::new();
    for address in up.iter().map(|node| &node.address).chain(&map.replicas).chain(configured) {
        if !known.contains(address) && !away.contains(address) {
            known.push(address.clone());
        }
    }
    (away, known)
}

/// How many slots nobody serves who is thought to.
fn missing(shared: &SharedRedis, view: &View) -> usize {
    let map = shared.topology.map();
    let is_away = |address: &Address| map.masters.iter().any(|node| node.address == *address && !node.is_up());
    let served = view.ranges.iter().filter(|range| !is_away(&range.master));
    let served: usize = served.map(|range| usize::from(range.last - range.first) + 1).sum();
    usize::from(SLOTS).saturating_sub(served)
}

impl Line {
    async fn ask(&self) -> Result<View, Fault> {
        let mut slots = redis::cmd("CLUSTER");
        slots.arg("SLOTS");
        let answer = time::timeout(PATIENCE, self.connection.ask(&slots)).await.map_err(|_| Fault::timeout())??;
        read(&answer, &self.address).ok_or_else(Fault::nonsense)
    }
}

/// Reads `[[first, last, [host, port, ..] of the master, those of replicas..]..]`, as the server at `by` told it.
fn read(answer: &Value, by: &Address) -> Option<View> {
    let Value::Array(rows) = answer else { return None };
    let mut view = View::default();
    for row in rows {
        let Value::Array(row) = row else { return None };
        let [Value::Int(first), Value::Int(last), master, replicas @ ..] = row.as_slice() else { return None };
        let slot = |number: &i64| u16::try_from(*number).ok().filter(|slot| *slot < SLOTS);
        let (first, last) = (slot(first)?, slot(last)?);
        if first > last {
            return None;
        }
        view.ranges.push(Range { first, last, master: server(master, by)? });
        for replica in replicas.iter().filter_map(|replica| server(replica, by)) {
            if !view.replicas.contains(&replica) {
                view.replicas.push(replica);
            }
        }
    }
    view.ranges.sort_by_key(|range| range.first);
    // A server that has met no other has nothing to tell.
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
    // Who does not know its own name is where it was asked.
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
        assert_eq!(view.ranges[0], Range { first: 0, last: 5460, master: by().at("10.0.0.1", 7001) });
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
