//! Log lines about proxies that are set up wrongly: as many as an operator reads.

use std::collections::HashMap;
use std::fmt::Display;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tracing::debug;
use tracing::warn;

use crate::clock::Timestamp;

/// Complains about the proxies of a process. Clones share what was logged: each kind of mistake, and when it was last.
#[derive(Clone, Debug, Default)]
pub struct Complaints(Arc<Mutex<HashMap<String, Timestamp>>>);

impl Complaints {
    /// Logs that a proxy describes its request badly: `part` is the header or the attribute that it is about, and `bad` has the
    /// same words for each mistake of a kind.
    pub(super) fn bad_description(&self, asker: IpAddr, part: &str, bad: &impl Display, now: Timestamp) {
        let bad = bad.to_string();
        self.complain(&bad, asker, part, &bad, now);
    }

    /// Logs that a proxy makes a call that cannot be decided. What is wrong with this `part` of it has different words each
    /// time.
    pub(super) fn bad_call(&self, asker: IpAddr, part: &str, bad: &impl Display, now: Timestamp) {
        self.complain(part, asker, part, &bad.to_string(), now);
    }

    fn complain(&self, kind: &str, asker: IpAddr, part: &str, bad: &str, now: Timestamp) {
        if self.is_due(kind, now) {
            warn!(%asker, part, "a proxy asked and got no decision: {bad}; more of this kind only at level debug for a minute");
        } else {
            debug!(%asker, part, "a proxy asked and got no decision: {bad}");
        }
    }

    fn is_due(&self, kind: &str, now: Timestamp) -> bool {
        let mut logged = self.0.lock();
        if let Some(last) = logged.get_mut(kind) {
            let is_due = now.since(*last) >= INTERVAL;
            if is_due {
                *last = now;
            }
            return is_due;
        }
        if logged.len() >= MAX_KINDS {
            logged.retain(|_, last| now.since(*last) < INTERVAL);
        }
        let is_due = logged.len() < MAX_KINDS;
        if is_due {
            logged.insert(kind.to_owned(), now);
        }
        is_due
    }
}

/// A proxy that is set up wrongly asks so for each of its requests.
const INTERVAL: Duration = Duration::from_secs(60);

/// More kinds than there are mistakes to make.
const MAX_KINDS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_due_once_a_minute_and_all_together_have_a_bound() {
        let complaints = Complaints::default();
        let at = |seconds: u64| Timestamp::from_micros(seconds * 1_000_000);
        assert!(complaints.is_due("one", at(1)) && complaints.is_due("other", at(1)));
        assert!(!complaints.is_due("one", at(60)) && complaints.is_due("one", at(61)));
        let due = (0..1000).filter(|number| complaints.is_due(&number.to_string(), at(62))).count();
        assert_eq!(due, MAX_KINDS - 1, "`other` is forgotten");
        assert!(complaints.is_due("late", at(122)));
    }
}
