//! Memory that a rush has used, given back once it is over.

use std::hint::black_box;
use std::time::Duration;

use tokio::time::MissedTickBehavior;
use tokio::time::interval;

/// Has a thread's allocator give back what has been free for a second, now and then, without end.
///
/// It looks for that only when something large is asked of it or given to it, which may not happen for hours after a
/// rush: requests are small.
pub(super) async fn give_back() {
    let mut looks = interval(BETWEEN_LOOKS);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        // Never written to, so that it takes an address and no memory.
        drop(black_box(Vec::<u8>::with_capacity(LARGE)));
    }
}

const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// More than the allocator keeps in pages with others.
const LARGE: usize = 1 << 20;
