//! Notices a server that vanished while requests are under way.

use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use h2::Ping;
use h2::PingPong;
use tokio::time::Instant;
use tokio::time::sleep_until;

use super::connection::ConnectionState;
use super::read_monitor::LastRead;
use crate::timer::peer_timeout;

/// Returns when requests are under way, nothing has been read for long, and the server did not answer a ping.
pub(super) async fn ping_unanswered(pings: Option<PingPong>, last_read: &LastRead, state: &ConnectionState) {
    let Some(mut pings) = pings else { return pending().await };
    let mut next_check = Instant::now() + PING_AFTER;
    loop {
        sleep_until(next_check).await;
        let due = last_read.at() + PING_AFTER;
        next_check = Instant::now() + PING_AFTER;
        if due > Instant::now() {
            next_check = due;
        } else if state.streams() > 0 {
            let pong = peer_timeout(PONG_WITHIN, pin!(pings.ping(Ping::opaque()))).await;
            if !matches!(pong, Ok(Ok(_))) {
                return;
            }
        }
    }
}

/// The server is pinged when requests are under way and nothing was read for so long.
const PING_AFTER: Duration = Duration::from_secs(10);
const PONG_WITHIN: Duration = Duration::from_secs(5);
