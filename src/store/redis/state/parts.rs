//! Keeps the part of this gateway in Redis.

use std::future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time;
use tracing::warn;

use super::core::RedisCore;
use crate::store::leases::HeldLeases;
use crate::store::parts::NextCall;
use crate::store::parts::PartCall;
use crate::store::redis::scripts::parts;
use crate::store::redis::topology::links::Links;
use crate::store::redis::topology::shared::SharedRedis;
use crate::store::redis::topology::slot;

/// The pause while all is as it should be.
const LATER: Duration = Duration::from_secs(1);

/// The pause while this gateway has less than would be fair, and after a call that failed.
const SOON: Duration = Duration::from_millis(250);

/// Calls for ever: one task for the process.
pub(in crate::store::redis) async fn follow(shared: Arc<SharedRedis>) {
    let (links, name) = (Links::unobserved(&shared), parts::name(&shared.settings.key_prefix));
    loop {
        wait_for_owner(&shared, &name).await;
        let Some(call) = shared.part.call() else { return future::pending().await };
        let next = ask(&shared, &links, &name, &call).await;
        match next {
            NextCall::AtOnce => {}
            NextCall::Soon => time::sleep(SOON).await,
            NextCall::Later => time::sleep(LATER).await,
        }
    }
}

impl RedisCore {
    /// Gives back the part of this process, because it ends.
    pub(in crate::store::redis) async fn return_part(&self) {
        if let Some(call) = self.shared.part.leave() {
            let name = parts::name(&self.shared.settings.key_prefix);
            ask(&self.shared, &self.links, &name, &call).await;
        }
    }
}

async fn ask(shared: &SharedRedis, links: &Links, name: &str, call: &PartCall) -> NextCall {
    let invocation = parts::invocation(name, &shared.time, call);
    let answer = links.call_best_effort(slot::of(name.as_bytes()), &invocation).await;
    let Some(answer) = answer.ok().and_then(|value| parts::read(&value)) else { return NextCall::Soon };
    set_gateways(&shared.leases, answer.gateways);
    shared.part.answered(call, &answer)
}

fn set_gateways(leases: &HeldLeases, gateways: u32) {
    if let Ok(gateways) = gateways.try_into() {
        leases.set_nodes(gateways);
    }
}

/// Waits until the server of the table is up. Says so when this gateway has no part meanwhile.
async fn wait_for_owner(shared: &SharedRedis, name: &str) {
    let up = shared.wait_for_owner(name);
    tokio::pin!(up);
    // At the start the server was not probed yet.
    let patience = shared.part.ends_in().unwrap_or(LATER);
    if time::timeout(patience, &mut up).await.is_ok() {
        return;
    }
    warn!(
        "Redis is away and this gateway holds no part of any limit: what counts by `on_failure: local` is denied until Redis \
         is back"
    );
    up.await;
}
