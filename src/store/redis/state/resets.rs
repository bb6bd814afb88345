//! Receives the resets, bans and questions of all gateways.

use std::sync::Arc;
use std::time::Duration;

use redis::{PushInfo, PushKind, Value};
use tokio::time;
use tokio::time::Instant;
use tracing::warn;

use super::parts;
use crate::store::key_ring::Resets;
use crate::store::redis::Question;
use crate::store::redis::topology::node::RedisNode;
use crate::store::redis::topology::shared::SharedRedis;
use crate::store::redis::transport::connection::RedisConnection;
use crate::store::redis::transport::fault::{DownCause, ServerFault};

/// The pause between attempts to subscribe.
const PACE: Duration = Duration::from_millis(250);

/// The same if the server forbids it.
const FORBIDDEN_PACE: Duration = Duration::from_secs(10);

/// How often a silent subscription is checked.
const ROUND: Duration = Duration::from_secs(15);

/// How long a server may take to confirm a subscription, or to answer a check.
const PATIENCE: Duration = Duration::from_secs(1);

/// Receives messages for ever, on one connection to any server that answers. In a cluster every server forwards the
/// messages of the others.
pub(in crate::store::redis) async fn listen(shared: Arc<SharedRedis>, resets: Resets) {
    let mut warned = false;
    loop {
        let node = any_server(&shared).await;
        let begun = Instant::now();
        let subscribed = time::timeout(PATIENCE, subscribe(&shared, &node, &resets)).await;
        let pace = match subscribed.unwrap_or_else(|_| Err(ServerFault::timeout())) {
            Ok(connection) => {
                warned = false;
                resets.subscribed();
                shared.questions.set_listening(true);
                shared.part.call_at_once();
                wait_for_end(&shared, &node, &connection).await;
                shared.questions.set_listening(false);
                // Until the next subscription it must ask.
                shared.part.call_at_once();
                resets.unsubscribed();
                PACE
            }
            Err(ServerFault { cause: DownCause::NoPermission, .. }) => {
                if !warned {
                    let (server, channel) = (&node.address, shared.channel());
                    warn!(
                        %server, %channel,
                        "redis {server} does not let this gateway subscribe to `{channel}`: the gateway asks redis about \
                         denied clients and bans twice a second instead. Allow its user `&{channel}`"
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

/// Waits for a server that is up.
async fn any_server(shared: &SharedRedis) -> Arc<RedisNode> {
    let mut updates = shared.updates.subscribe();
    loop {
        let map = shared.topology.map();
        if let Some(node) = map.masters.iter().find(|node| node.is_up()) {
            return Arc::clone(node);
        }
        // The sender is in `shared`: it outlives this.
        drop(updates.changed().await);
    }
}

async fn subscribe(
    shared: &Arc<SharedRedis>,
    node: &RedisNode,
    resets: &Resets,
) -> Result<RedisConnection, ServerFault> {
    let (asked, resets) = (Arc::clone(shared), resets.clone());
    let on_push = Arc::new(move |push: PushInfo| {
        match (push.kind, push.data.as_slice()) {
            (PushKind::Message, [_, Value::BulkString(message)]) if Question::is_in(message) => {
                asked.questions.receive(message);
            }
            (PushKind::Message, [_, Value::BulkString(message)]) if parts::is_change(message) => {
                asked.part.call_at_once();
            }
            (PushKind::Message, [_, Value::BulkString(message)]) => resets.apply_message(message),
            // An invalidation of all keys: the server was emptied.
            (PushKind::Invalidate, [Value::Nil]) => {
                // There is nothing to give back to.
                drop(asked.leases.take_all());
                asked.part.call_at_once();
                resets.server_emptied();
            }
            _ => {}
        }
    });
    let connection = shared.connector.connect_for_messages(&node.address, on_push).await?;
    connection.subscribe(&shared.channel()).await?;
    // This connection reads no key, so tracking reports only FLUSHALL and FLUSHDB. A user without the permission goes
    // without.
    drop(connection.ask(redis::cmd("CLIENT").arg("TRACKING").arg("ON")).await);
    Ok(connection)
}

/// Waits until the subscription has ended.
async fn wait_for_end(shared: &SharedRedis, node: &Arc<RedisNode>, connection: &RedisConnection) {
    let mut updates = shared.updates.subscribe();
    let mut round = time::interval_at(Instant::now() + ROUND, ROUND);
    loop {
        tokio::select! {
            () = connection.closed() => return,
            _ = updates.changed() => {
                if node.is_retired() {
                    return;
                }
            }
            _ = round.tick() => {
                // A device in between may have dropped the connection silently. A server that is down sends nothing
                // anyway.
                let ping = redis::cmd("PING");
                let answered = time::timeout(PATIENCE, connection.ask(&ping)).await.is_ok();
                if !answered && node.is_up() {
                    return;
                }
            }
        }
    }
}
