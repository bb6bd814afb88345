//! Gives memory back to the system after a burst of requests.

use std::hint::black_box;
use std::time::Duration;

use tokio::time::MissedTickBehavior;
use tokio::time::interval;

/// Makes the allocator of this thread give back memory that has been free for a second. Never returns.
///
/// The allocator looks for such memory only when something large is allocated or freed. Requests are small, so that may
/// not happen for hours after a burst.
pub(super) async fn trim_allocator() {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // Never written to: it takes address space and no memory.
        drop(black_box(Vec::<u8>::with_capacity(LARGE)));
    }
}

const INTERVAL: Duration = Duration::from_secs(1);

/// More than the allocator keeps in shared pages.
const LARGE: usize = 1 << 20;
