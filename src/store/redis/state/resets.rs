//! Hears which keys were reset, and who is banned, from whichever gateway.

use std::sync::Arc;
use std::time::Duration;

use redis::PushInfo;
use redis::PushKind;
use redis::Value;
use tokio::time;
use tokio::time::Instant;
use tracing::warn;

use crate::store::redis::topology::node::Node;
use crate::store::redis::topology::shared::SharedRedis;
use crate::store::redis::transport::breaker::Cause;
use crate::store::redis::transport::connect::Connection;
use crate::store::redis::transport::fault::Fault;
use crate::store::resets::Resets;

/// How often it is tried to hear of resets.
const PACE: Duration = Duration::from_millis(250);

/// The same where the server forbids it.
const FORBIDDEN_PACE: Duration = Duration::from_secs(10);

/// How often a subscription that tells nothing is looked after.
const ROUND: Duration = Duration::from_secs(15);

/// How long a server may take to say that it will tell.
const PATIENCE: Duration = Duration::from_secs(1);

/// Listens for good: on one connection, to any server that answers. In a cluster each tells what another was told.
pub(in crate::store::redis) async fn listen(shared: Arc<SharedRedis>, resets: Resets) {
    let mut warned = false;
    loop {
        let node = answering(&shared).await;
        let begun = Instant::now();
        let subscribed = time::timeout(PATIENCE, subscribe(&shared, &node, &resets)).await;
        let pace = match subscribed.unwrap_or_else(|_| Err(Fault::timeout())) {
            Ok(connection) => {
                warned = false;
                resets.subscribed();
                over(&shared, &node, &connection).await;
                resets.unsubscribed();
                PACE
            }
            Err(Fault { cause: Cause::NoPermission, .. }) => {
                if !warned {
                    let (server, channel) = (&node.address, shared.channel());
                    warn!(
                        %server, %channel,
                        "redis {server} does not let this gateway subscribe to `{channel}`: it does not hear of \
                         resets and bans, and asks redis about denied clients and bans twice a second. Allow its user `&{channel}`"
                    );
                }
                warned = true;
                FORBIDDEN_PACE
            }
            Err(_) => PACE,
        };
        time::sleep_until(begun + pace).await;
    }
}

/// Waits for a server that answers.
async fn answering(shared: &SharedRedis) -> Arc<Node> {
    let mut news = shared.news.subscribe();
    loop {
        let map = shared.topology.map();
        if let Some(node) = map.masters.iter().find(|node| node.is_up()) {
            return Arc::clone(node);
        }
        // The sender is in `shared`: it outlives this.
        drop(news.changed().await);
    }
}

async fn subscribe(shared: &SharedRedis, node: &Node, resets: &Resets) -> Result<Connection, Fault> {
    let told = resets.clone();
    let on_push = Arc::new(move |push: PushInfo| {
        match (push.kind, push.data.as_slice()) {
            (PushKind::Message, [_, Value::BulkString(message)]) => told.apply_message(message),
            // All keys at once: the server was emptied.
            (PushKind::Invalidate, [Value::Nil]) => told.server_emptied(),
            _ => {}
        }
    });
    let connection = shared.connector.connect_for_messages(&node.address, on_push).await?;
    connection.subscribe(&shared.channel()).await?;
    // This connection reads no key: what it is told of this way is FLUSHALL and FLUSHDB. A user who may not ask for it
    // goes without.
    drop(connection.ask(redis::cmd("CLIENT").arg("TRACKING").arg("ON")).await);
    Ok(connection)
}

/// Waits until the subscription tells nothing more.
async fn over(shared: &SharedRedis, node: &Arc<Node>, connection: &Connection) {
    let mut news = shared.news.subscribe();
    let mut round = time::interval_at(Instant::now() + ROUND, ROUND);
    loop {
        tokio::select! {
            () = connection.closed() => return,
            _ = news.changed() => {
                if node.is_retired() {
                    return;
                }
            }
            _ = round.tick() => {
                // Something in between may have lost the server without a word. One that is away tells nothing anyway.
                let ping = redis::cmd("PING");
                let answered = time::timeout(PATIENCE, connection.ask(&ping)).await.is_ok();
                if !answered && node.is_up() {
                    return;
                }
            }
        }
    }
}
