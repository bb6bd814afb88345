//! What a snapshot means to a process whose clock is wrong, or is right again.

use std::time::Duration;

use super::content::SnapshotContent;
use crate::clock::Timestamp;
use crate::store::bans::saved::SavedBan;
use crate::store::sessions::known::KnownSession;

/// Where the clock of a process stands beside the last moment that a snapshot knows of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct ClockCorrection {
    now: Timestamp,
    /// How far the clock is behind that moment; zero where time has gone on.
    pub(super) behind: Duration,
}

impl ClockCorrection {
    /// `written_ahead`: how far the wall clock is behind the last write of the file.
    pub(super) fn of(
        content: &SnapshotContent,
        sessions: &[KnownSession],
        written_ahead: Duration,
        now: Timestamp,
    ) -> Self {
        let moments = content.bans.iter().map(SavedBan::since).chain(sessions.iter().map(|known| known.used));
        let last = moments.max().unwrap_or(now);
        Self { now, behind: last.since(now).max(written_ahead) }
    }

    /// Moves what is to come as far back as the clock is, so that a ban of a minute lasts no longer than a minute, whatever
    /// the clock shows now or showed then.
    pub(super) fn apply(self, content: &mut SnapshotContent, sessions: &mut [KnownSession]) {
        for ban in &mut content.bans {
            ban.correct(self.now, self.behind);
        }
        if self.behind.is_zero() {
            return;
        }
        for until in content.known.iter_mut().flat_map(|(_, clients)| clients).map(|(_, until)| until) {
            *until = self.earlier(*until);
        }
        for known in sessions {
            known.used = self.earlier(known.used).min(self.now);
        }
    }

    fn earlier(self, moment: Timestamp) -> Timestamp {
        Timestamp::EPOCH + moment.since(Timestamp::EPOCH).saturating_sub(self.behind)
    }
}
