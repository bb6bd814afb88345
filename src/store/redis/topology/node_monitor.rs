//! Monitors one server: probes it while it is down, logs when it goes down and comes up, and asks from time to time how
//! many keys it has.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::Value;
use tokio::time;
use tokio::time::Instant;
use tracing::{info, warn};

use super::node::{Eviction, RedisNode};
use super::shared::SharedRedis;
use crate::store::key_ring::Resets;
use crate::store::redis::scripts;
use crate::store::redis::settings::Mode;
use crate::store::redis::topology::node;
use crate::store::redis::topology::node::SLOTS;
use crate::store::redis::transport::connection::RedisConnection;
use crate::store::redis::transport::fault::{DownCause, ServerFault};
use crate::words::clock;
use crate::words::timer::{PeerTimedOut, peer_timeout};

/// How often the monitor probes a server that is down.
const PACE: Duration = Duration::from_millis(100);

/// How long a probe waits for a server that is down. A hanging server answers on the same connection as soon as it
/// wakes; after this time the monitor connects anew, because a device in between may have dropped the connection.
const DOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a probe waits for a server that is up.
const UP_TIMEOUT: Duration = Duration::from_secs(1);

/// How often a server that is up is asked how many keys it has.
const ROUND: Duration = Duration::from_secs(15);

/// The settings of the server are checked again after this many rounds.
const INSPECTION: u32 = 4;

/// A server is logged as back after it has been up for this long.
const STEADY: Duration = Duration::from_secs(1);

pub(in crate::store::redis) async fn monitor(shared: Arc<SharedRedis>, node: Arc<RedisNode>, resets: Resets) {
    let mut report = OutageReport::new(node.address.to_string());
    let mut warnings = ServerWarnings::default();
    let mut connection = None;
    while !node.is_retired() {
        let begun = Instant::now();
        let state = node.state();
        if let Some(cause) = state.cause {
            // A server that answers with an error gives the same answer to the probe, which reports its text.
            if !cause.is_answered() && report.went_down(cause, None) {
                shared.topology.refresh.notify_one();
            }
            shared.notify();
            if cause.is_of_connecting() {
                connection = None;
            }
        }
        let bound = if state.cause.is_some() { DOWN_TIMEOUT } else { UP_TIMEOUT };
        let probe = probe(&shared, &node, &resets, &mut connection, &mut warnings);
        let answered =
            peer_timeout(bound, pin!(probe)).await.unwrap_or_else(|PeerTimedOut| Err(ServerFault::timeout()));
        match answered {
            Ok(()) => {
                if let Some(cause) = state.cause
                    && report.went_down(cause, None)
                {
                    shared.topology.refresh.notify_one();
                }
                if !node.is_up() {
                    shared.rotate_holder();
                }
                node.recover();
                report.came_up();
                note_probe(&shared, &node);
                wait_for_doubt(&shared, &node, connection.as_ref(), &mut warnings, &mut report).await;
            }
            Err(fault) => {
                if node.stay_down(fault.cause) {
                    shared.observer.went_down();
                }
                if report.went_down(fault.cause, Some(&fault)) {
                    shared.topology.refresh.notify_one();
                }
                note_probe(&shared, &node);
                if fault.cause.needs_new_connection() {
                    connection = None;
                }
                time::sleep_until(begun + PACE).await;
            }
        }
    }
    if report.retired() {
        shared.rotate_holder();
    }
}

/// Notes that the server was probed, for callers that wait for the first contact.
fn note_probe(shared: &SharedRedis, node: &RedisNode) {
    node.probed.store(true, Ordering::Release);
    shared.notify();
}

/// Probes whether the server can decide, with a real decision that writes.
async fn probe(
    shared: &SharedRedis,
    node: &Arc<RedisNode>,
    resets: &Resets,
    known: &mut Option<RedisConnection>,
    warnings: &mut ServerWarnings,
) -> Result<(), ServerFault> {
    known.take_if(|connection| !connection.is_open());
    let fresh = known.is_none();
    let connection = match known {
        Some(connection) => connection,
        None => known.insert(shared.connector.connect(&node.address).await?),
    };
    match probe_name(shared, node) {
        Some(name) => {
            let probe = scripts::probe(&name);
            match connection.send(&probe.command).await? {
                Value::ServerError(error) if error.code() == "NOSCRIPT" => {
                    connection.load(&probe.script.text).await?;
                    connection.ask(&probe.command).await.map(drop)?;
                }
                // The server is up. Only the map is wrong, and the server redirects calls.
                Value::ServerError(error)
                    if shared.settings.mode == Mode::Cluster
                        && matches!(error.code(), "MOVED" | "ASK" | "TRYAGAIN") =>
                {
                    shared.topology.refresh.notify_one();
                }
                Value::ServerError(error) => return Err(ServerFault::of_answer(&error)),
                _ => {}
            }
        }
        // A server without slots takes no writes.
        None => connection.ask(&redis::cmd("PING")).await.map(drop)?,
    }
    if let Some(wait) = shared.replica_wait() {
        connection.wait_for_replicas(wait).await?;
    }
    if fresh {
        // It may have restarted without its keys, or be another server at the same address.
        shared.part.call_at_once();
        resets.server_emptied();
        warnings.look(connection, node).await;
    }
    Ok(())
}

/// The name of a key in a slot of this server.
fn probe_name(shared: &SharedRedis, node: &Arc<RedisNode>) -> Option<String> {
    let name = format!("{}:probe", shared.settings.key_prefix);
    if shared.settings.mode != Mode::Cluster {
        return Some(name);
    }
    let map = shared.topology.map();
    let has = |name: &String| map.has(node, node::of(name.as_bytes()));
    // Enough names to find one for most servers that have a single slot.
    (0..u32::from(SLOTS) * 4).map(|number| format!("{name}:{number}")).find(has)
}

/// Waits until there is a reason to probe again.
async fn wait_for_doubt(
    shared: &SharedRedis,
    node: &RedisNode,
    known: Option<&RedisConnection>,
    warnings: &mut ServerWarnings,
    report: &mut OutageReport,
) {
    let Some(connection) = known else { return };
    let steady = time::sleep(STEADY);
    tokio::pin!(steady);
    let mut is_reported = false;
    let (mut round, mut rounds) = (time::interval(ROUND), 0);
    loop {
        tokio::select! {
            () = node.changed.notified() => {
                if node.is_retired() || !node.is_up() {
                    return;
                }
            }
            () = connection.closed() => return,
            () = &mut steady, if !is_reported => {
                is_reported = true;
                report.stayed_up();
            }
            _ = round.tick() => {
                let size = redis::cmd("DBSIZE");
                match peer_timeout(UP_TIMEOUT, pin!(connection.ask(&size))).await {
                    Ok(Ok(Value::Int(keys))) => {
                        node.keys.store(u64::try_from(keys).unwrap_or_default(), Ordering::Relaxed);
                        shared.notify();
                    }
                    // The server can decide even if this user may not ask for its size.
                    Ok(Ok(_) | Err(ServerFault { cause: DownCause::NoPermission, .. })) => {}
                    Ok(Err(_)) | Err(_) => return,
                }
                rounds += 1;
                if rounds % INSPECTION == 0
                    && peer_timeout(UP_TIMEOUT, pin!(warnings.look(connection, node))).await.is_err()
                {
                    return;
                }
            }
        }
    }
}

/// Logs each outage of a server: once when it begins, and once when it has ended for good.
#[derive(Debug)]
pub(in crate::store::redis) struct OutageReport {
    server: String,
    /// When the logged outage began.
    since: Option<Instant>,
    /// When the server came back, if that is not logged yet.
    returned: Option<Instant>,
    /// The causes of this outage that are logged.
    causes: Vec<DownCause>,
}

impl OutageReport {
    pub(in crate::store::redis) fn new(server: String) -> Self {
        Self { server, since: None, returned: None, causes: Vec::new() }
    }

    /// The server is down; `true`: it was up before.
    pub(in crate::store::redis) fn went_down(&mut self, cause: DownCause, fault: Option<&ServerFault>) -> bool {
        let is_news = self.since.is_none() || self.returned.take().is_some();
        let is_told = self.causes.contains(&cause);
        if !is_told {
            self.causes.push(cause);
        }
        let server = &self.server;
        let detail = fault.map_or_else(String::new, |fault| format!(", {fault}"));
        if self.since.is_some() {
            // A server that starts refuses, then loads, then is a replica: each is a hint, and is said once in an outage.
            if !is_told && cause.is_answered() {
                let cause = cause.word();
                warn!(%server, cause, "redis {server} is not back yet: now it answers otherwise ({cause}{detail})");
            }
            return is_news;
        }
        self.since = Some(Instant::now());
        let cause = cause.word();
        warn!(
            %server, cause,
            "redis {server} is down ({cause}{detail}): each limit follows its `on_failure` until it is back"
        );
        is_news
    }

    /// The server is retired; `true`: it was down.
    fn retired(&mut self) -> bool {
        let Some(since) = self.since.take() else { return false };
        self.causes.clear();
        let (server, outage_ms) = (&self.server, millis(since.elapsed()));
        info!(%server, outage_ms, "redis {server} was down for {outage_ms} ms, and other servers have its keys now");
        true
    }

    pub(in crate::store::redis) fn came_up(&mut self) {
        if self.since.is_some() {
            self.returned = Some(Instant::now());
        }
    }

    /// The server has been up for a while.
    pub(in crate::store::redis) fn stayed_up(&mut self) {
        if let (Some(returned), Some(since)) = (self.returned.take(), self.since.take()) {
            self.causes.clear();
            let server = &self.server;
            let outage_ms = millis(returned - since);
            info!(%server, outage_ms, "redis {server} is back, it was down for {outage_ms} ms");
        }
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

// Warns about settings of a server that endanger counts.

/// The first version that has every feature the gateway needs.
const OLDEST: (u32, u32) = (6, 2);

/// The warnings that were logged about a server.
#[derive(Debug, Default)]
pub(in crate::store::redis) struct ServerWarnings {
    version: Option<String>,
    policy: Option<String>,
}

impl ServerWarnings {
    /// Asks the server for its version and policy. Without the permission for `INFO` there are no warnings.
    async fn look(&mut self, connection: &RedisConnection, node: &RedisNode) {
        let address = &node.address;
        let server = info(connection, "server").await;
        let version = field(&server, "redis_version").filter(|version| is_too_old(version));
        if let Some(version) = new_problem(&mut self.version, version) {
            warn!(
                server = %address, version,
                "redis {address} has version {version}: portcullis needs 6.2 or later, or Valkey"
            );
        }
        let memory = info(connection, "memory").await;
        let policy = field(&memory, "maxmemory_policy").filter(|policy| *policy != "noeviction");
        // Without a bound on its memory it drops nothing yet.
        note_eviction(node, policy.filter(|_| field(&memory, "maxmemory") != Some("0")));
        if let Some(policy) = new_problem(&mut self.policy, policy) {
            warn!(
                server = %address, maxmemory_policy = policy,
                "redis {address} has `maxmemory-policy {policy}`: when memory is short it drops counters, and limits let \
                 too many requests pass. Set it to `noeviction`"
            );
        }
    }
}

fn note_eviction(node: &RedisNode, policy: Option<&str>) {
    let mut known = node.eviction.lock();
    if known.as_ref().map(|known| &*known.policy) != policy {
        let server = node.address.to_string();
        *known = policy.map(|policy| Eviction { server, policy: policy.to_owned(), since: clock::wall() });
    }
}

/// The current problem, if it is not the one that was logged last.
fn new_problem<'n>(logged: &mut Option<String>, problem: Option<&'n str>) -> Option<&'n str> {
    if logged.as_deref() == problem {
        return None;
    }
    *logged = problem.map(str::to_owned);
    problem
}

async fn info(connection: &RedisConnection, section: &str) -> String {
    let mut info = redis::cmd("INFO");
    info.arg(section);
    match connection.ask(&info).await {
        Ok(Value::BulkString(text)) => String::from_utf8_lossy(&text).into_owned(),
        Ok(Value::VerbatimString { text, .. }) => text,
        _ => String::new(),
    }
}

fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
}

fn is_too_old(version: &str) -> bool {
    let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
    // A version without numbers is not known to be old.
    numbers.next().is_some_and(|major| (major, numbers.next().unwrap_or_default()) < OLDEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        for old in ["6.0.16", "5.0.14", "2.8", "6"] {
            assert!(is_too_old(old), "{old}");
        }
        for new in ["6.2.0", "7.0.15", "7.4.1", "8.0.0", "10.0.1", "unstable"] {
            assert!(!is_too_old(new), "{new}");
        }
    }

    #[test]
    fn a_problem_is_logged_once_and_again_after_it_was_fixed() {
        let mut logged = None;
        assert_eq!(new_problem(&mut logged, Some("allkeys-lru")), Some("allkeys-lru"));
        assert_eq!(new_problem(&mut logged, Some("allkeys-lru")), None);
        assert_eq!(new_problem(&mut logged, Some("volatile-ttl")), Some("volatile-ttl"));
        assert_eq!(new_problem(&mut logged, None), None);
        assert_eq!(new_problem(&mut logged, Some("volatile-ttl")), Some("volatile-ttl"));
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "# Memory\r\nmaxmemory_policy_x:a\r\nmaxmemory_policy:noeviction\r\n";
        assert_eq!(field(text, "maxmemory_policy"), Some("noeviction"));
    }
}
