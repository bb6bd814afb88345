//! One message for each limit and key in so long; the others are counted.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::key::KeyHash;

/// When was told last, by limit and key.
#[derive(Debug)]
pub(super) struct Pace {
    every: Duration,
    told: HashMap<(Arc<str>, KeyHash), Told>,
    swept: Timestamp,
}

#[derive(Debug)]
struct Told {
    at: Timestamp,
    suppressed: u64,
}

/// Whether to tell.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum May {
    /// So many were not told since the last time.
    Tell { suppressed: u64 },
    /// It was told lately.
    Wait,
    /// There is no room to remember another key.
    Full,
}

/// About 6 MB.
const MOST_KEYS: usize = 64 * 1024;

impl Pace {
    pub(super) fn new(every: Duration) -> Self {
        Self { every, told: HashMap::new(), swept: Timestamp::EPOCH }
    }

    pub(super) fn ask(&mut self, limit: &Arc<str>, key: KeyHash, now: Timestamp) -> May {
        self.sweep(now);
        let name = (Arc::clone(limit), key);
        let is_full = self.told.len() >= MOST_KEYS;
        match self.told.get_mut(&name) {
            Some(told) if now.since(told.at) < self.every => {
                told.suppressed += 1;
                May::Wait
            }
            Some(told) => {
                let suppressed = std::mem::take(&mut told.suppressed);
                told.at = now;
                May::Tell { suppressed }
            }
            None if is_full => May::Full,
            None => {
                self.told.insert(name, Told { at: now, suppressed: 0 });
                May::Tell { suppressed: 0 }
            }
        }
    }

    /// Forgets whom nothing is owed: those that may be told of again, and have no count to report for long.
    fn sweep(&mut self, now: Timestamp) {
        if now.since(self.swept) < self.every.max(LEAST_SWEEP) {
            return;
        }
        self.swept = now;
        let every = self.every;
        self.told.retain(|_, told| {
            let silent = now.since(told.at);
            silent < every || (told.suppressed > 0 && silent < every * KEPT)
        });
        self.told.shrink_to(1024);
    }
}

/// Looking through all keys takes a millisecond.
const LEAST_SWEEP: Duration = Duration::from_secs(1);

/// For so many times `every` the count of what was suppressed is kept.
const KEPT: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(60);

    fn second(second: u64) -> Timestamp {
        Timestamp::from_micros((1000 + second) * 1_000_000)
    }

    #[test]
    fn each_limit_and_key_is_told_of_once_in_so_long_and_what_was_not_told_is_counted() {
        let (mut pace, login, api) = (Pace::new(EVERY), Arc::from("login"), Arc::from("api"));
        assert_eq!(pace.ask(&login, KeyHash(1), second(0)), May::Tell { suppressed: 0 });
        for _ in 0..9 {
            assert_eq!(pace.ask(&login, KeyHash(1), second(59)), May::Wait);
        }
        assert_eq!(pace.ask(&login, KeyHash(2), second(59)), May::Tell { suppressed: 0 });
        assert_eq!(pace.ask(&api, KeyHash(1), second(59)), May::Tell { suppressed: 0 });
        assert_eq!(pace.ask(&login, KeyHash(1), second(60)), May::Tell { suppressed: 9 });
        assert_eq!(pace.ask(&login, KeyHash(1), second(61)), May::Wait);
        assert_eq!(pace.ask(&login, KeyHash(1), second(240)), May::Tell { suppressed: 1 });
    }

    #[test]
    fn a_crowd_of_keys_takes_bounded_room_and_makes_way_when_its_time_is_over() {
        let (mut pace, login) = (Pace::new(EVERY), Arc::from("login"));
        for key in 0..MOST_KEYS as u128 {
            assert_eq!(pace.ask(&login, KeyHash(key), second(0)), May::Tell { suppressed: 0 });
        }
        assert_eq!(pace.ask(&login, KeyHash(u128::MAX), second(1)), May::Full);
        assert_eq!(pace.ask(&login, KeyHash(u128::MAX), second(60)), May::Tell { suppressed: 0 });
        assert_eq!(pace.told.len(), 1);
    }
}
