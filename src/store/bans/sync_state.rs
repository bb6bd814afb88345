//! Which changes of the bans in Redis this process knows.

use std::collections::BTreeSet;
use std::collections::HashSet;

use super::ban::BanId;
use super::version::BanVersion;

/// Which changes of the bans in Redis this process knows.
#[derive(Debug, Default)]
pub(super) struct BanSyncState {
    /// Every change up to this one is known.
    pub(super) version: Option<BanVersion>,
    /// Later changes that are known, while a change before them is missing.
    pub(super) ahead: BTreeSet<BanVersion>,
    /// Which bans changed while all bans are being loaded: a page that was read before such a change is stale.
    pub(super) changed_during_load: Option<HashSet<BanId>>,
    /// Whether this process receives changes as they are made.
    pub(super) is_subscribed: bool,
}

/// How many changes are remembered beyond a missing one.
const MOST_AHEAD: usize = 10_000;

impl BanSyncState {
    /// Whether no change is missing before this one.
    pub(super) fn is_next(&self, version: BanVersion) -> bool {
        self.version.map_or(version.changes == 1, |known| known.next() == version)
    }

    /// Remembers a change that was received. `false`: a change before it is missing.
    pub(super) fn receive(&mut self, version: BanVersion) -> bool {
        self.ahead.insert(version);
        if self.ahead.len() > MOST_AHEAD {
            self.ahead.pop_first();
        }
        if self.version.is_none() && self.is_next(version) {
            self.version = Some(version);
        }
        self.advance();
        self.ahead.is_empty()
    }

    /// Moves the known version on over the changes that were received ahead of it.
    pub(super) fn advance(&mut self) {
        let Some(mut known) = self.version else { return self.ahead.clear() };
        self.ahead.retain(|ahead| !known.follows(*ahead));
        while self.ahead.remove(&known.next()) {
            known = known.next();
        }
        self.version = Some(known);
    }
}
