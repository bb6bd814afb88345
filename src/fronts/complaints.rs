//! Log lines about proxies that are set up wrongly: as many as an operator reads.

use std::fmt::Display;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tracing::debug;
use tracing::warn;

use crate::clock::Timestamp;

/// Complains about the proxies of a process. Clones share what was logged.
#[derive(Clone, Debug, Default)]
pub struct Complaints(Arc<Mutex<Option<Timestamp>>>);

impl Complaints {
    /// Logs that a proxy describes its request badly: `part` is the header or the attribute that it is about.
    pub(super) fn bad_description(&self, asker: IpAddr, part: &str, bad: &impl Display, now: Timestamp) {
        if self.is_due(now) {
            warn!(%asker, part, "a proxy asked and got no decision: {bad}; more only at level debug for a minute");
        } else {
            debug!(%asker, part, "a proxy asked and got no decision: {bad}");
        }
    }

    fn is_due(&self, now: Timestamp) -> bool {
        let mut logged = self.0.lock();
        let is_due = logged.is_none_or(|logged| now.since(logged) >= INTERVAL);
        if is_due {
            *logged = Some(now);
        }
        is_due
    }
}

/// A proxy that is set up wrongly asks so for each of its requests.
const INTERVAL: Duration = Duration::from_secs(60);
