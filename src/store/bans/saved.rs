//! Bans as one process of a gateway saves them for another.

use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;

use super::ban::Ban;
use super::ban::BanRecord;
use super::blob::BanBlob;
use super::text::micros;
use crate::clock::Timestamp;

/// A ban and its step on the ladder, in a snapshot or on the way to the process that takes over. The addresses in its key are
/// in clear, because it stays with this gateway. Moments and spans are microseconds.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(in crate::store) struct SavedBan {
    blob: String,
    since: u64,
    until: u64,
    by_operator: bool,
    step: u32,
    length: u64,
}

impl SavedBan {
    pub(in crate::store) fn of(record: &BanRecord) -> Self {
        let BanRecord { ban, step, length, .. } = record;
        Self {
            blob: BanBlob::with_networks(&ban.subject, &ban.reason).to_json(),
            since: ban.since.as_micros(),
            until: ban.until.as_micros(),
            by_operator: ban.by_operator,
            step: *step,
            length: micros(*length),
        }
    }

    /// When it began.
    pub(in crate::store) fn since(&self) -> Timestamp {
        Timestamp::from_micros(self.since)
    }

    /// Where it still lasts: as long as was left at the last moment that is known, and never longer than the whole ban. The clock
    /// is `behind` that moment.
    pub(in crate::store) fn correct(&mut self, now: Timestamp, behind: Duration) {
        let (whole, now) = (self.until.saturating_sub(self.since), now.as_micros());
        if self.until > now {
            let left = (self.until - now).saturating_sub(micros(behind)).min(whole);
            self.until = now + left;
            self.since = self.since.min(now);
        }
    }

    /// `None`: it is not a ban.
    pub(in crate::store) fn read(&self) -> Option<BanRecord> {
        let blob = BanBlob::read(&self.blob)?;
        let networks = blob.networks();
        let (subject, reason) = blob.subject()?;
        let subject = subject.with_networks(networks);
        let moment = Timestamp::from_micros;
        let (since, until) = (moment(self.since), moment(self.until));
        let ban = Ban { id: subject.id(), subject, since, until, reason, by_operator: self.by_operator };
        Some(BanRecord::new(ban, self.step, Duration::from_micros(self.length)))
    }
}
