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

use super::Shared;
use super::connect::Connection;
use super::connect::Fault;
use super::topology::Range;
use super::topology::SLOTS;
use super::url::Address;

/// How often the map is asked for when nothing is amiss.
const ROUND: Duration = Duration::from_secs(15);

/// The same while a server is away, or a slot was not where it should be.
const TROUBLED_ROUND: Duration = Duration::from_millis(200);

/// How long a server may take to tell.
const PATIENCE: Duration = Duration::from_millis(500);

/// What one server thinks of all.
#[derive(Debug, Default, Eq, PartialEq)]
struct View {
    ranges: Vec<Range>,
    replicas: Vec<Address>,
}

/// Keeps the map for good.
pub(super) async fn follow(shared: Arc<Shared>) {
    let mut asked = None;
    let mut warned = false;
    loop {
        let begun = Instant::now();
        match view(&shared, &mut asked).await {
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
        if is_well(&shared) {
            tokio::select! {
                () = time::sleep(ROUND) => {}
                // Whom to believe is not known: all are asked.
                () = shared.topology.doubted.notified() => asked = None,
            }
        }
        time::sleep_until(begun + TROUBLED_ROUND).await;
    }
}

fn is_well(shared: &Shared) -> bool {
    shared.topology.map().masters.iter().all(|node| node.is_up())
}

/// What the server that was asked last thinks, or, when something is amiss, the best of what all think.
async fn view(shared: &Arc<Shared>, asked: &mut Option<(Address, Connection)>) -> Result<View, Fault> {
    if let Some((address, connection)) = asked.take_if(|_| is_well(shared))
        && let Ok(view) = told(&connection, &address).await
    {
        *asked = Some((address, connection));
        return Ok(view);
    }
    let mut asking = JoinSet::new();
    for address in known(shared) {
        let shared = Arc::clone(shared);
        asking.spawn(async move {
            let connection = shared.connector.connect(&address).await?;
            let view = told(&connection, &address).await?;
            Ok((view, address, connection))
        });
    }
    let (mut views, mut fault) = (Vec::new(), Fault::timeout());
    while let Some(answer) = asking.join_next().await {
        match answer {
            Ok(Ok(told)) => views.push(told),
            Ok(Err(failed)) => fault = failed,
            // It panicked or was aborted: it told nothing.
            Err(_) => {}
        }
    }
    let agreeing = |view: &View| views.iter().filter(|(other, ..)| other.ranges == view.ranges).count();
    // Who has slots with nobody, or with a server that is known to be away, has not heard of a change yet.
    let worth = |place: &usize| {
        let (view, ..) = &views[*place];
        (Reverse(missing(shared, view)), agreeing(view))
    };
    let best = (0..views.len()).max_by_key(worth).ok_or(fault)?;
    let (view, address, connection) = views.swap_remove(best);
    *asked = Some((address, connection));
    Ok(view)
}

/// How many slots nobody serves who is thought to.
fn missing(shared: &Shared, view: &View) -> usize {
    let map = shared.topology.map();
    let is_away = |address: &Address| map.masters.iter().any(|node| node.address == *address && !node.is_up());
    let served = view.ranges.iter().filter(|range| !is_away(&range.master));
    let served: usize = served.map(|range| usize::from(range.last - range.first) + 1).sum();
    usize::from(SLOTS).saturating_sub(served)
}

/// Every server heard of, each once.
fn known(shared: &Shared) -> Vec<Address> {
    let map = shared.topology.map();
    let masters = map.masters.iter().map(|node| node.address.clone());
    let configured = shared.settings.urls.iter().map(|url| url.address.clone());
    let mut known = Vec::new();
    for address in masters.chain(map.replicas.iter().cloned()).chain(configured) {
        if !known.contains(&address) {
            known.push(address);
        }
    }
    known
}

async fn told(connection: &Connection, address: &Address) -> Result<View, Fault> {
    let mut slots = redis::cmd("CLUSTER");
    slots.arg("SLOTS");
    let answer = time::timeout(PATIENCE, connection.ask(&slots)).await.map_err(|_| Fault::timeout())??;
    read(&answer, address).ok_or_else(Fault::nonsense)
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
}
