//! Discovers the master through sentinels.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::{PushInfo, PushKind, Value};
use tokio::task::JoinSet;
use tokio::time;
use tokio::time::Instant;

use super::node_monitor::OutageReport;
use super::shared::SharedRedis;
use crate::store::redis::transport::connect::{Address, Url};
use crate::store::redis::transport::connection::RedisConnection;
use crate::store::redis::transport::fault::{DownCause, ServerFault};

/// How often the sentinels are asked while the master is up.
const ROUND: Duration = Duration::from_secs(10);

/// The same while the master is down. Sentinels also announce a new master by themselves.
const TROUBLED_ROUND: Duration = Duration::from_millis(500);

/// The sentinels are never asked more often than this.
const CLOSEST: Duration = Duration::from_millis(100);

/// How long a sentinel, or a server that is said to be the master, may take to answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// The name of the master if neither the URL nor the sentinels name one.
const USUAL_NAME: &str = "mymaster";

/// The channel on which sentinels announce a new master.
const SWITCHES: &str = "+switch-master";

/// Follows the master for ever.
pub(in crate::store::redis) async fn follow(shared: Arc<SharedRedis>) {
    let named = shared.settings.urls.iter().map(|url| url.sentinel().to_string()).collect::<Vec<_>>().join(", ");
    let mut report = OutageReport::new(format!("behind sentinels {named}"));
    loop {
        let begun = Instant::now();
        match master(&shared).await {
            Ok(address) => {
                shared.topology.install_one(&address);
                report.came_up();
                report.stayed_up();
            }
            // The last known master may still be the master.
            Err(_) if !shared.topology.map().masters.is_empty() => {}
            Err(fault) => _ = report.went_down(fault.cause, Some(&fault)),
        }
        shared.is_discovered.store(true, Ordering::Release);
        shared.notify();
        let masters = &shared.topology.map().masters;
        let is_well = !masters.is_empty() && masters.iter().all(|node| node.is_up());
        let pause = if is_well { ROUND } else { TROUBLED_ROUND };
        let _asked_for = time::timeout(pause, shared.topology.refresh.notified()).await;
        time::sleep_until(begun + CLOSEST).await;
    }
}

/// Requests a refresh whenever a sentinel announces a new master, for ever. Subscribes to the first sentinel that
/// answers.
pub(in crate::store::redis) async fn listen(shared: Arc<SharedRedis>) {
    loop {
        for url in &shared.settings.urls {
            if let Ok(Ok(connection)) = time::timeout(PATIENCE * 2, subscribe(&shared, &url.sentinel())).await {
                shared.topology.refresh.notify_one();
                connection.closed().await;
            }
        }
        time::sleep(ROUND / 10).await;
    }
}

async fn subscribe(shared: &Arc<SharedRedis>, sentinel: &Address) -> Result<RedisConnection, ServerFault> {
    let notified = Arc::clone(shared);
    let on_push = move |push: PushInfo| {
        if push.kind == PushKind::Message {
            notified.topology.refresh.notify_one();
        }
    };
    let connection = shared.connector.connect_to_sentinel(sentinel, Some(Arc::new(on_push))).await?;
    connection.subscribe(SWITCHES).await?;
    Ok(connection)
}

/// The server that most sentinels name as the master, of those that confirm that they are a master.
async fn master(shared: &Arc<SharedRedis>) -> Result<Address, ServerFault> {
    let mut asking = JoinSet::new();
    for url in shared.settings.urls.clone() {
        let shared = Arc::clone(shared);
        asking.spawn(async move {
            let answer = time::timeout(PATIENCE * 2, ask_sentinel(&shared, &url)).await;
            answer.unwrap_or_else(|_| Err(ServerFault::timeout()))
        });
    }
    let (mut named, mut fault): (Vec<(Address, usize)>, _) = (Vec::new(), ServerFault::timeout());
    while let Some(answer) = asking.join_next().await {
        match answer {
            Ok(Ok(address)) => match named.iter_mut().find(|(known, _)| *known == address) {
                Some((_, votes)) => *votes += 1,
                None => named.push((address, 1)),
            },
            Ok(Err(failed)) => fault = failed,
            // The task panicked or was aborted.
            Err(_) => {}
        }
    }
    named.sort_by_key(|(_, votes)| std::cmp::Reverse(*votes));
    for (address, _) in named {
        match time::timeout(PATIENCE, verify(shared, &address)).await {
            Ok(Ok(())) => return Ok(address),
            Ok(Err(failed)) => fault = failed,
            Err(_) => fault = ServerFault::timeout(),
        }
    }
    Err(fault)
}

/// The master that one sentinel names.
async fn ask_sentinel(shared: &SharedRedis, url: &Url) -> Result<Address, ServerFault> {
    let sentinel = url.sentinel();
    let connection = shared.connector.connect_to_sentinel(&sentinel, None).await?;
    let name = match &url.master {
        Some(name) => name.clone(),
        None => only_name(&connection).await?,
    };
    let mut ask = redis::cmd("SENTINEL");
    ask.arg("get-master-addr-by-name").arg(&name);
    match connection.ask(&ask).await? {
        Value::Array(parts) => address(&parts, &sentinel).ok_or_else(ServerFault::nonsense),
        _ => Err(ServerFault { cause: DownCause::Other, detail: format!("the sentinel knows no master named {name}") }),
    }
}

/// The name of the master, if a sentinel monitors only one.
async fn only_name(connection: &RedisConnection) -> Result<String, ServerFault> {
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

/// Fails if the server answers that it is not a master.
async fn verify(shared: &SharedRedis, address: &Address) -> Result<(), ServerFault> {
    let connection = shared.connector.connect(address).await?;
    match connection.ask(&redis::cmd("ROLE")).await {
        Ok(Value::Array(role)) if role.first().and_then(text) == Some("master") => Ok(()),
        Ok(_) => Err(ServerFault { cause: DownCause::ReadOnly, detail: format!("{address} is not a master") }),
        // Without the permission to ask, the first write shows it.
        Err(ServerFault { cause: DownCause::NoPermission, .. }) => Ok(()),
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
