//! Keeps the part of this gateway in Redis.

use std::future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time;
use tokio::time::Instant;
use tracing::warn;

use crate::store::parts::{NextCall, PartCall};
use crate::store::redis::scripts;
use crate::store::redis::state::store::RedisCore;
use crate::store::redis::topology::links::Links;
use crate::store::redis::topology::node;
use crate::store::redis::topology::node::RedisNode;
use crate::store::redis::topology::shared::SharedRedis;

/// The message of a gateway that comes or goes.
const CHANGED: &str = "parts";

/// The pause while all is as it should be.
const LATER: Duration = Duration::from_secs(60);

/// The same for a gateway that hears nothing of others, or that others do not hear: shorter than a table that was lost grants
/// nothing, so that this gateway tells what it holds before others are given it.
const LATER_DEAF: Duration = Duration::from_secs(1);

/// The pause while this gateway has less than would be fair, and after a call that failed.
const SOON: Duration = Duration::from_millis(250);

/// So many times: what it waits for comes at once if it comes.
const OFTEN: u32 = 40;

/// How often gateways on this machine are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// How long the first answer of Redis may take before this gateway says that it holds nothing.
const START: Duration = Duration::from_secs(1);

/// Whether a message of the channel says that a gateway comes or goes.
pub(super) fn is_change(message: &[u8]) -> bool {
    message == CHANGED.as_bytes()
}

/// Calls for ever: one task for the process.
pub(in crate::store::redis) async fn follow(shared: Arc<SharedRedis>) {
    let (links, name) = (Links::unobserved(&shared), scripts::parts_name(&shared.settings.key_prefix));
    let mut repeated = 0;
    loop {
        let node = wait_for_owner(&shared, &name).await;
        let Some(call) = shared.part.call() else { return future::pending().await };
        let next = ask(&shared, &links, &name, &call).await;
        repeated = if matches!(next, NextCall::Soon(_)) { repeated + 1 } else { 0 };
        match next {
            NextCall::AtOnce => {}
            NextCall::Soon(granted_in) if repeated <= OFTEN => time::sleep(SOON.max(granted_in)).await,
            NextCall::Soon(_) => wait(&shared, &name, &node, LATER_DEAF).await,
            NextCall::Later => wait(&shared, &name, &node, if hears_all(&shared) { LATER } else { LATER_DEAF }).await,
        }
    }
}

impl RedisCore {
    /// Gives back the part of this process, because it ends.
    pub(in crate::store::redis) async fn return_part(&self) {
        if let Some(call) = self.shared.part.leave() {
            let name = scripts::parts_name(&self.shared.settings.key_prefix);
            ask(&self.shared, &self.links, &name, &call).await;
        }
    }
}

async fn ask(shared: &SharedRedis, links: &Links, name: &str, call: &PartCall) -> NextCall {
    let invocation = scripts::part_call(name, &shared.time, call);
    let answer = links.call_best_effort(node::of(name.as_bytes()), &invocation).await;
    let Some(answer) = answer.ok().and_then(|value| scripts::part_answer(&value)) else {
        return NextCall::Soon(Duration::ZERO);
    };
    if let Ok(gateways) = answer.gateways.try_into() {
        shared.leases.set_nodes(gateways);
    }
    let next = shared.part.answered(call, &answer);
    shared.notify();
    if answer.has_changed {
        // A gateway that misses the message calls within a minute.
        let _ = links.publish(&shared.channel(), CHANGED).await;
    }
    next
}

fn hears_all(shared: &SharedRedis) -> bool {
    shared.questions.is_listening() && shared.may_publish.load(Ordering::Acquire)
}

/// Waits for so long, or until there is a reason to call earlier.
async fn wait(shared: &SharedRedis, name: &str, node: &Arc<RedisNode>, pause: Duration) {
    let end = Instant::now() + pause;
    let is_neighbour_over = async {
        while !shared.part.is_one_over() {
            time::sleep(LOOK).await;
        }
    };
    tokio::select! {
        () = time::sleep_until(end) => {}
        () = shared.part.reason_to_call() => {}
        () = shared.wait_for_other_owner(name, node) => {}
        () = is_neighbour_over => {}
    }
}

/// Waits until the server of the table is up. Says so when this gateway has no part meanwhile.
async fn wait_for_owner(shared: &SharedRedis, name: &str) -> Arc<RedisNode> {
    let up = shared.wait_for_owner(name);
    tokio::pin!(up);
    // At the start the server was not probed yet.
    let patience = shared.part.ends_in().unwrap_or(START);
    if let Ok(node) = time::timeout(patience, &mut up).await {
        return node;
    }
    if !shared.part.is_fixed() {
        warn!(
            "Redis is away and this gateway holds no part of any limit: what counts by `on_failure: local` is denied until \
             Redis is back"
        );
    }
    up.await
}
