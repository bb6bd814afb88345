//! Which server is the master, as sentinels tell.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::PushInfo;
use redis::PushKind;
use redis::Value;
use tokio::task::JoinSet;
use tokio::time;
use tokio::time::Instant;

use super::node_monitor::Report;
use super::shared::SharedRedis;
use crate::store::redis::transport::breaker::Cause;
use crate::store::redis::transport::connect::Connection;
use crate::store::redis::transport::fault::Fault;
use crate::store::redis::transport::url::Address;
use crate::store::redis::transport::url::Url;

/// How often the sentinels are asked when nothing is amiss.
const ROUND: Duration = Duration::from_secs(10);

/// The same while the master is away: sentinels tell of themselves when they have another.
const TROUBLED_ROUND: Duration = Duration::from_millis(500);

/// They are not asked more often than this, whatever they tell.
const CLOSEST: Duration = Duration::from_millis(100);

/// How long a sentinel, or a server that is said to be the master, may take to answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// What a master is called where nobody says so.
const USUAL_NAME: &str = "mymaster";

/// Where a sentinel tells that another server is the master now.
const SWITCHES: &str = "+switch-master";

/// Follows the master for good.
pub(in crate::store::redis) async fn follow(shared: Arc<SharedRedis>) {
    let named = shared.settings.urls.iter().map(|url| url.sentinel().to_string()).collect::<Vec<_>>().join(", ");
    let mut report = Report::new(format!("behind sentinels {named}"));
    loop {
        let begun = Instant::now();
        match master(&shared).await {
            Ok(address) => {
                shared.topology.install_one(&address);
                report.back();
                report.steady();
            }
            // Whoever was the master may still be.
            Err(_) if !shared.topology.map().masters.is_empty() => {}
            Err(fault) => _ = report.away(fault.cause, Some(&fault)),
        }
        shared.surveyed.store(true, Ordering::Release);
        shared.tell();
        let masters = &shared.topology.map().masters;
        let is_well = !masters.is_empty() && masters.iter().all(|node| node.is_up());
        let pause = if is_well { ROUND } else { TROUBLED_ROUND };
        let _asked_for = time::timeout(pause, shared.topology.doubted.notified()).await;
        time::sleep_until(begun + CLOSEST).await;
    }
}

/// Has it asked at once who is the master when the first sentinel that answers says that this has changed, for good.
pub(in crate::store::redis) async fn listen(shared: Arc<SharedRedis>) {
    loop {
        for url in &shared.settings.urls {
            if let Ok(Ok(connection)) = time::timeout(PATIENCE * 2, subscribe(&shared, &url.sentinel())).await {
                shared.topology.doubted.notify_one();
                connection.closed().await;
            }
        }
        time::sleep(ROUND / 10).await;
    }
}

async fn subscribe(shared: &Arc<SharedRedis>, sentinel: &Address) -> Result<Connection, Fault> {
    let watched = Arc::clone(shared);
    let on_push = move |push: PushInfo| {
        if push.kind == PushKind::Message {
            watched.topology.doubted.notify_one();
        }
    };
    let connection = shared.connector.connect_to_sentinel(sentinel, Some(Arc::new(on_push))).await?;
    connection.subscribe(SWITCHES).await?;
    Ok(connection)
}

/// The server that most sentinels name, of those that say themselves that they are a master.
async fn master(shared: &Arc<SharedRedis>) -> Result<Address, Fault> {
    let mut asking = JoinSet::new();
    for url in shared.settings.urls.clone() {
        let shared = Arc::clone(shared);
        asking.spawn(async move {
            let told = time::timeout(PATIENCE * 2, told(&shared, &url)).await;
            told.unwrap_or_else(|_| Err(Fault::timeout()))
        });
    }
    let (mut named, mut fault): (Vec<(Address, usize)>, _) = (Vec::new(), Fault::timeout());
    while let Some(answer) = asking.join_next().await {
        match answer {
            Ok(Ok(address)) => match named.iter_mut().find(|(known, _)| *known == address) {
                Some((_, votes)) => *votes += 1,
                None => named.push((address, 1)),
            },
            Ok(Err(failed)) => fault = failed,
            // It panicked or was aborted: it told nothing.
            Err(_) => {}
        }
    }
    named.sort_by_key(|(_, votes)| std::cmp::Reverse(*votes));
    for (address, _) in named {
        match time::timeout(PATIENCE, verify(shared, &address)).await {
            Ok(Ok(())) => return Ok(address),
            Ok(Err(failed)) => fault = failed,
            Err(_) => fault = Fault::timeout(),
        }
    }
    Err(fault)
}

async fn told(shared: &SharedRedis, url: &Url) -> Result<Address, Fault> {
    let sentinel = url.sentinel();
    let connection = shared.connector.connect_to_sentinel(&sentinel, None).await?;
    let name = match &url.master {
        Some(name) => name.clone(),
        None => only_name(&connection).await?,
    };
    let mut ask = redis::cmd("SENTINEL");
    ask.arg("get-master-addr-by-name").arg(&name);
    match connection.ask(&ask).await? {
        Value::Array(parts) => address(&parts, &sentinel).ok_or_else(Fault::nonsense),
        _ => Err(Fault { cause: Cause::Other, detail: format!("the sentinel knows no master named {name}") }),
    }
}

/// What the only master is called that a sentinel looks after.
async fn only_name(connection: &Connection) -> Result<String, Fault> {
    let mut ask = redis::cmd("SENTINEL");
    ask.arg("MASTERS");
    let names = match connection.ask(&ask).await? {
        Value::Array(masters) => masters.iter().filter_map(name).collect(),
        _ => Vec::new(),
    };
    match <[String; 1]>::try_from(names) {
        Ok([only]) => Ok(only),
        Err(_) => Ok(USUAL_NAME.to_owned()),
    }
}

/// Fails where the server says of itself that it is no master.
async fn verify(shared: &SharedRedis, address: &Address) -> Result<(), Fault> {
    let connection = shared.connector.connect(address).await?;
    match connection.ask(&redis::cmd("ROLE")).await {
        Ok(Value::Array(role)) if role.first().and_then(text) == Some("master") => Ok(()),
        Ok(_) => Err(Fault { cause: Cause::ReadOnly, detail: format!("{address} is no master") }),
        // Who may not ask learns it from the first write.
        Err(Fault { cause: Cause::NoPermission, .. }) => Ok(()),
        Err(fault) => Err(fault),
    }
}

/// The name among the fields of a master: `[name, mymaster, ip, ..]`.
fn name(master: &Value) -> Option<String> {
    let fields: Vec<&str> = match master {
        Value::Array(fields) => fields.iter().filter_map(text).collect(),
        _ => return None,
    };
    fields.chunks_exact(2).find(|pair| pair[0] == "name").map(|pair| pair[1].to_owned())
}

fn address(parts: &[Value], sentinel: &Address) -> Option<Address> {
    let [host, port] = parts else { return None };
    Some(sentinel.at(text(host)?, text(port)?.parse().ok()?))
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(text) => str::from_utf8(text).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}
