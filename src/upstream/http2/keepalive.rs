//! Whether a connection with requests under way still has somebody at its other end.

use std::future::pending;
use std::sync::atomic::Ordering;
use std::time::Duration;

use h2::Ping;
use h2::PingPong;
use tokio::time::Instant;
use tokio::time::sleep_until;
use tokio::time::timeout;

use super::ConnectionState;
use super::read_monitor::LastRead;

/// Returns when requests are under way, nothing came for long, and a ping was not answered.
pub(super) async fn lost(pings: Option<PingPong>, last_read: &LastRead, load: &ConnectionState) {
    let Some(mut pings) = pings else { return pending().await };
    let mut look = Instant::now() + PING_AFTER;
    loop {
        sleep_until(look).await;
        let due = last_read.last() + PING_AFTER;
        look = Instant::now() + PING_AFTER;
        if due > Instant::now() {
            look = due;
        } else if load.streams.load(Ordering::Relaxed) > 0
            && !matches!(timeout(PONG_WITHIN, pings.ping(Ping::opaque())).await, Ok(Ok(_)))
        {
            return;
        }
    }
}

/// A connection with requests under way on which nothing came for so long is asked whether it lives.
const PING_AFTER: Duration = Duration::from_secs(10);
const PONG_WITHIN: Duration = Duration::from_secs(5);
