//! Which gateways do not answer questions, and since when.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;

use super::presence::Presence;
use crate::clock::Timestamp;

/// The gateways that have answered no question since a moment, by the clock of Redis.
#[derive(Debug, Default)]
pub(super) struct SilentGateways(Mutex<HashMap<String, Timestamp>>);

impl SilentGateways {
    /// For how long a gateway has answered no question. What it wrote since ends its silence.
    pub(super) fn silent_for(&self, gateway: &str, presence: &Presence, now: Timestamp) -> Duration {
        let mut silent = self.0.lock();
        match silent.get(gateway) {
            Some(since) if *since >= presence.written => now.since(*since),
            Some(_) => {
                silent.remove(gateway);
                Duration::ZERO
            }
            None => Duration::ZERO,
        }
    }

    /// Notes which gateways have not answered a question that was asked at that moment. Others are not silent.
    pub(super) fn note<'g>(&self, unanswered: impl IntoIterator<Item = &'g str>, asked: Timestamp) {
        let mut silent = self.0.lock();
        let before = std::mem::take(&mut *silent);
        silent.extend(unanswered.into_iter().map(|gateway| {
            let since = before.get(gateway).copied().unwrap_or(asked);
            (gateway.to_owned(), since)
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn silence_begins_with_the_first_question_and_ends_with_a_write() {
        let silent = SilentGateways::default();
        let wrote = |seconds| Presence { written: at(seconds), ..Presence::default() };
        let silent_for = |presence: &Presence, now| silent.silent_for("one", presence, at(now)).as_secs();
        assert_eq!(silent_for(&wrote(90), 100), 0);
        silent.note(["one", "two"], at(100));
        silent.note(["one"], at(105));
        assert_eq!(silent_for(&wrote(90), 108), 8);
        assert_eq!(silent.silent_for("two", &wrote(90), at(108)), Duration::ZERO);
        assert_eq!(silent_for(&wrote(107), 108), 0);
        silent.note(["one"], at(110));
        assert_eq!(silent_for(&wrote(107), 112), 2);
        silent.note([], at(113));
        assert_eq!(silent_for(&wrote(107), 114), 0);
    }
}
