//! Which of the requests that pass are counted by key.

use std::cell::Cell;

use crate::clock::Timestamp;

/// How many requests this one stands for in the counts by key: 1 while this core is not busy, then 8 for one of eight. 0:
/// it is not counted.
///
/// Counting a key costs about as much as one percent of a request. A core that is not busy has that to spare.
pub fn pass_weight(now: Timestamp) -> u64 {
    thread_local!(static PASSES: Cell<(u64, u64)> = const { Cell::new((0, 0)) });
    let second = now.as_micros() / 1_000_000;
    let (counted_second, before) = PASSES.get();
    let before = if counted_second == second { before } else { 0 };
    PASSES.set((second, before + 1));
    match before {
        ..COUNTED_EACH => 1,
        _ if before.is_multiple_of(SAMPLED) => SAMPLED,
        _ => 0,
    }
}

/// So many requests of a second are counted one by one.
const COUNTED_EACH: u64 = 1000;

/// One of so many is counted beyond.
const SAMPLED: u64 = 8;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_core_that_is_not_busy_counts_all_and_a_busy_one_a_part_that_stands_for_all() {
        let now = Timestamp::from_micros(1_700_000_000_000_000);
        assert!((0..1000).all(|_| pass_weight(now) == 1));
        let (mut counted, mut weight) = (0, 0);
        for _ in 0..80_000 {
            let one = pass_weight(now);
            counted += u64::from(one > 0);
            weight += one;
        }
        assert_eq!((counted, weight), (10_000, 80_000));
        assert_eq!(pass_weight(now + Duration::from_secs(1)), 1);
    }
}
