//! Monitors one server: probes it while it is down, logs when it goes down and comes up, and asks at times how many keys
//! it holds.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::Value;
use tokio::time;
use tokio::time::Instant;
use tracing::info;
use tracing::warn;

use super::map::SLOTS;
use super::node::Node;
use super::shared::SharedRedis;
use super::slot;
use super::warnings::Warnings;
use crate::store::redis::scripts;
use crate::store::redis::settings::Mode;
use crate::store::redis::transport::breaker::Cause;
use crate::store::redis::transport::connect::Connection;
use crate::store::redis::transport::fault::Fault;
use crate::store::resets::Resets;

/// How often the monitor probes a server that is down.
const PACE: Duration = Duration::from_millis(100);

/// A server that hangs is waited for on one connection: it answers there as soon as it wakes. Once in a while on
/// another, for there may be something in between that lost the first.
const HANGING: Duration = Duration::from_secs(5);

/// The same for a server that nobody has missed yet.
const SUSPICIOUS: Duration = Duration::from_secs(1);

/// How often a server that answers is asked what it holds.
const ROUND: Duration = Duration::from_secs(15);

/// After so many of those it is looked at whether someone has changed it for the worse.
const INSPECTION: u32 = 4;

/// A server that is back for so long is said to be.
const STEADY: Duration = Duration::from_secs(1);

pub(in crate::store::redis) async fn monitor(shared: Arc<SharedRedis>, node: Arc<Node>, resets: Resets) {
    let mut report = Report::new(node.address.to_string());
    let mut warnings = Warnings::default();
    let mut connection = None;
    while !node.is_retired() {
        let begun = Instant::now();
        let state = node.state();
        if let Some(cause) = state.cause {
            if report.away(cause, None) {
                shared.topology.doubted.notify_one();
            }
            shared.tell();
        }
        let bound = if state.cause.is_some() { HANGING } else { SUSPICIOUS };
        let greeting = greet(&shared, &node, &resets, &mut connection, &mut warnings);
        let answered = time::timeout(bound, greeting).await.unwrap_or_else(|_| Err(Fault::timeout()));
        match answered {
            Ok(()) => {
                if !node.is_up() {
                    shared.rotate_holder();
                }
                node.recover();
                report.back();
                note_probe(&shared, &node);
                rest(&shared, &node, connection.as_ref(), &mut warnings, &mut report).await;
            }
            Err(fault) => {
                node.stay_down(fault.cause);
                if report.away(fault.cause, Some(&fault)) {
                    shared.topology.doubted.notify_one();
                }
                note_probe(&shared, &node);
                // Who it is to the server was said when the connection was made.
                if matches!(fault.cause, Cause::Timeout | Cause::Connection | Cause::NoAuth) {
                    connection = None;
                }
                time::sleep_until(begun + PACE).await;
            }
        }
    }
    if report.gone() {
        shared.rotate_holder();
    }
}

/// The server was probed: who waits for the first contact may go on.
fn note_probe(shared: &SharedRedis, node: &Node) {
    node.probed.store(true, Ordering::Release);
    shared.tell();
}

/// Whether the server can decide: a real decision is written to it.
async fn greet(
    shared: &SharedRedis,
    node: &Arc<Node>,
    resets: &Resets,
    known: &mut Option<Connection>,
    warnings: &mut Warnings,
) -> Result<(), Fault> {
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
                // It is well. Only what is known of the slots is not, and whoever asks for one is sent on.
                Value::ServerError(error)
                    if shared.settings.mode == Mode::Cluster
                        && matches!(error.code(), "MOVED" | "ASK" | "TRYAGAIN") =>
                {
                    shared.topology.doubted.notify_one();
                }
                Value::ServerError(error) => return Err(Fault::of_answer(&error)),
                _ => {}
            }
        }
        // It has no slot, so nothing can be written to it.
        None => connection.ask(&redis::cmd("PING")).await.map(drop)?,
    }
    if fresh {
        // It may have been started again without its keys, or be another in its place.
        resets.server_emptied();
        warnings.look(connection, &node.address).await;
    }
    Ok(())
}

/// The name of a key that this server has; in a cluster each has another.
fn probe_name(shared: &SharedRedis, node: &Arc<Node>) -> Option<String> {
    let name = format!("{}:probe", shared.settings.key_prefix);
    if shared.settings.mode != Mode::Cluster {
        return Some(name);
    }
    let map = shared.topology.map();
    let has = |name: &String| map.has(node, slot::of(name.as_bytes()));
    // Enough to find a name for a server that has a single slot, most often.
    (0..u32::from(SLOTS) * 4).map(|number| format!("{name}:{number}")).find(has)
}

/// Until there is a reason to probe again.
async fn rest(
    shared: &SharedRedis,
    node: &Node,
    known: Option<&Connection>,
    warnings: &mut Warnings,
    report: &mut Report,
) {
    let Some(connection) = known else { return };
    let steady = time::sleep(STEADY);
    tokio::pin!(steady);
    let mut said = false;
    let (mut round, mut rounds) = (time::interval(ROUND), 0);
    loop {
        tokio::select! {
            () = node.changed.notified() => {
                if node.is_retired() || !node.is_up() {
                    return;
                }
            }
            () = connection.closed() => return,
            () = &mut steady, if !said => {
                said = true;
                report.steady();
            }
            _ = round.tick() => {
                let size = redis::cmd("DBSIZE");
                match time::timeout(SUSPICIOUS, connection.ask(&size)).await {
                    Ok(Ok(Value::Int(keys))) => {
                        node.keys.store(u64::try_from(keys).unwrap_or_default(), Ordering::Relaxed);
                        shared.tell();
                    }
                    // Whoever may not ask can decide all the same.
                    Ok(Ok(_) | Err(Fault { cause: Cause::NoPermission, .. })) => {}
                    Ok(Err(_)) | Err(_) => return,
                }
                rounds += 1;
                if rounds % INSPECTION == 0
                    && time::timeout(SUSPICIOUS, warnings.look(connection, &node.address)).await.is_err()
                {
                    return;
                }
            }
        }
    }
}

/// What is said of a server: once when it goes, once when it is back for good.
#[derive(Debug)]
pub(in crate::store::redis) struct Report {
    server: String,
    /// Since when it is said to be away.
    since: Option<Instant>,
    /// When it came back, where that is not said yet.
    returned: Option<Instant>,
}

impl Report {
    pub(in crate::store::redis) fn new(server: String) -> Self {
        Self { server, since: None, returned: None }
    }

    /// It is away; `true`: it was not, as far as was known.
    pub(in crate::store::redis) fn away(&mut self, cause: Cause, fault: Option<&Fault>) -> bool {
        let is_news = self.since.is_none() || self.returned.take().is_some();
        if self.since.is_some() {
            return is_news;
        }
        self.since = Some(Instant::now());
        let server = &self.server;
        let cause = cause.word();
        let detail = fault.map_or_else(String::new, |fault| format!(", {fault}"));
        warn!(
            %server, cause,
            "redis {server} is away ({cause}{detail}): until it is back each limit is kept as its `on_failure` says"
        );
        is_news
    }

    /// Nobody asks it any more; `true`: it went while it was away.
    fn gone(&mut self) -> bool {
        let Some(since) = self.since.take() else { return false };
        let (server, away_ms) = (&self.server, millis(since.elapsed()));
        info!(%server, away_ms, "redis {server} is asked no more, others have its keys: it was away for {away_ms} ms");
        true
    }

    pub(in crate::store::redis) fn back(&mut self) {
        if self.since.is_some() {
            self.returned = Some(Instant::now());
        }
    }

    /// It has been back for a while.
    pub(in crate::store::redis) fn steady(&mut self) {
        if let (Some(returned), Some(since)) = (self.returned.take(), self.since.take()) {
            let server = &self.server;
            let away_ms = millis(returned - since);
            info!(%server, away_ms, "redis {server} is back, it was away for {away_ms} ms");
        }
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
