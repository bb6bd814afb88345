//! Lets one notification pass for each limit and key in a given time, and counts those it suppresses.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::key::KeyHash;

/// Remembers the last notification of each limit and key.
#[derive(Debug)]
pub(super) struct Suppression {
    every: Duration,
    last_sent: HashMap<(Arc<str>, KeyHash), LastSent>,
    swept: Timestamp,
}

#[derive(Debug)]
struct LastSent {
    at: Timestamp,
    /// How many were suppressed since.
    suppressed: u64,
}

/// Whether to send a notification.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SendVerdict {
    /// With the number of those suppressed since the last one.
    Send { suppressed: u64 },
    /// One was sent lately.
    Suppress,
    /// There is no room to remember another key.
    Full,
}

/// About 6 MB.
const MAX_KEYS: usize = 64 * 1024;

impl Suppression {
    pub(super) fn new(every: Duration) -> Self {
        Self { every, last_sent: HashMap::new(), swept: Timestamp::EPOCH }
    }

    pub(super) fn check(&mut self, limit: &Arc<str>, key: KeyHash, now: Timestamp) -> SendVerdict {
        self.sweep(now);
        let id = (Arc::clone(limit), key);
        let is_full = self.last_sent.len() >= MAX_KEYS;
        match self.last_sent.get_mut(&id) {
            Some(last) if now.since(last.at) < self.every => {
                last.suppressed += 1;
                SendVerdict::Suppress
            }
            Some(last) => {
                let suppressed = std::mem::take(&mut last.suppressed);
                last.at = now;
                SendVerdict::Send { suppressed }
            }
            None if is_full => SendVerdict::Full,
            None => {
                self.last_sent.insert(id, LastSent { at: now, suppressed: 0 });
                SendVerdict::Send { suppressed: 0 }
            }
        }
    }

    /// Removes keys that may be notified again and have no suppressed ones to report. A count that is never reported is
    /// removed after [`KEPT_INTERVALS`].
    fn sweep(&mut self, now: Timestamp) {
        if now.since(self.swept) < self.every.max(MIN_SWEEP_INTERVAL) {
            return;
        }
        self.swept = now;
        let every = self.every;
        self.last_sent.retain(|_, last| {
            let age = now.since(last.at);
            age < every || (last.suppressed > 0 && age < every * KEPT_INTERVALS)
        });
        self.last_sent.shrink_to(1024);
    }
}

/// Looking through all keys takes a millisecond.
const MIN_SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// How many times `every` a count of suppressed notifications is kept.
const KEPT_INTERVALS: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(60);

    fn second(second: u64) -> Timestamp {
        Timestamp::from_micros((1000 + second) * 1_000_000)
    }

    #[test]
    fn each_limit_and_key_is_notified_once_in_a_while_and_what_is_suppressed_is_counted() {
        let (mut suppression, login, api) = (Suppression::new(EVERY), Arc::from("login"), Arc::from("api"));
        assert_eq!(suppression.check(&login, KeyHash(1), second(0)), SendVerdict::Send { suppressed: 0 });
        for _ in 0..9 {
            assert_eq!(suppression.check(&login, KeyHash(1), second(59)), SendVerdict::Suppress);
        }
        assert_eq!(suppression.check(&login, KeyHash(2), second(59)), SendVerdict::Send { suppressed: 0 });
        assert_eq!(suppression.check(&api, KeyHash(1), second(59)), SendVerdict::Send { suppressed: 0 });
        assert_eq!(suppression.check(&login, KeyHash(1), second(60)), SendVerdict::Send { suppressed: 9 });
        assert_eq!(suppression.check(&login, KeyHash(1), second(61)), SendVerdict::Suppress);
        assert_eq!(suppression.check(&login, KeyHash(1), second(240)), SendVerdict::Send { suppressed: 1 });
    }

    #[test]
    fn many_keys_take_bounded_room_and_make_way_when_their_time_is_over() {
        let (mut suppression, login) = (Suppression::new(EVERY), Arc::from("login"));
        for key in 0..MAX_KEYS as u128 {
            assert_eq!(suppression.check(&login, KeyHash(key), second(0)), SendVerdict::Send { suppressed: 0 });
        }
        assert_eq!(suppression.check(&login, KeyHash(u128::MAX), second(1)), SendVerdict::Full);
        assert_eq!(suppression.check(&login, KeyHash(u128::MAX), second(60)), SendVerdict::Send { suppressed: 0 });
        assert_eq!(suppression.last_sent.len(), 1);
    }
}
