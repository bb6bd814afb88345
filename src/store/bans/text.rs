//! Bans as text, as Redis stores and sends them.

use std::sync::Arc;
use std::time::Duration;

use super::ban::Ban;
use super::ban::BanId;
use super::ban::BanRecord;
use super::ban::BanSubject;
use super::blob::BanBlob;
use super::sealed::SealedNetworks;
use super::version::BanVersion;
use crate::clock::Timestamp;
use crate::signing::KeyRing;

/// A ban as the script sends it: with spans instead of moments, because clocks differ.
#[derive(Clone, Debug)]
pub(in crate::store) struct BanUpdate {
    pub version: BanVersion,
    left: Duration,
    length: Duration,
    step: u32,
    age: Duration,
    by_operator: bool,
    blob: String,
}

impl BanUpdate {
    /// Reads `left length step age hand blob`; the blob is the last word.
    pub(in crate::store) fn read(version: BanVersion, words: &[impl AsRef<str>]) -> Option<Self> {
        let [left, length, step, age, hand, blob] = words else { return None };
        let span = |text: &str| text.parse().ok().map(Duration::from_micros);
        Some(Self {
            version,
            left: span(left.as_ref())?,
            length: span(length.as_ref())?,
            step: step.as_ref().parse().ok()?,
            age: span(age.as_ref())?,
            by_operator: hand.as_ref() == "h",
            blob: blob.as_ref().to_owned(),
        })
    }

    /// The ban with moments of the clock of this process.
    pub(in crate::store) fn record(&self, id: BanId, now: Timestamp, ring: &KeyRing) -> Option<BanRecord> {
        let (subject, reason, sealed) = read_blob(&self.blob)?;
        let since = Timestamp::from_micros(now.as_micros().saturating_sub(micros(self.age)));
        let ban = Ban { id, subject, since, until: now + self.left, reason, by_operator: self.by_operator };
        let mut record = BanRecord { ban, sealed, step: self.step, length: self.length };
        record.open(ring);
        Some(record)
    }
}

/// Reads what Redis stores: `until length step since hand blob`. The moments are those of a clock that shows `theirs`
/// when the clock of this process shows `ours`.
pub(in crate::store) fn read_stored(
    id: BanId,
    text: &str,
    theirs: u64,
    ours: Timestamp,
    ring: &KeyRing,
) -> Option<BanRecord> {
    let mut words = text.splitn(6, ' ');
    let mut number = || words.next()?.parse::<u64>().ok();
    let (until, length, step, since) = (number()?, number()?, number()?, number()?);
    let (hand, blob) = (words.next()?, words.next()?);
    let (subject, reason, sealed) = read_blob(blob)?;
    let here = |moment: u64| {
        let shifted = i128::from(moment) - i128::from(theirs) + i128::from(ours.as_micros());
        Timestamp::from_micros(u64::try_from(shifted.max(0)).unwrap_or(u64::MAX))
    };
    let ban = Ban { id, subject, since: here(since), until: here(until), reason, by_operator: hand == "h" };
    let mut record = BanRecord { ban, sealed, step: u32::try_from(step).ok()?, length: Duration::from_micros(length) };
    record.open(ring);
    Some(record)
}

/// Writes the subject and the reason of a ban as Redis keeps them. `sealed`: what this process could not open of it.
pub(in crate::store) fn blob(
    subject: &BanSubject,
    reason: &str,
    sealed: Option<&SealedNetworks>,
    ring: &KeyRing,
) -> String {
    let sealed = subject.seal(ring).or_else(|| sealed.cloned());
    BanBlob::with_sealed(subject, reason, sealed).to_json()
}

/// Reads what [`blob`] wrote, with the addresses still encrypted.
fn read_blob(text: &str) -> Option<(BanSubject, Arc<str>, Option<SealedNetworks>)> {
    let mut blob = BanBlob::read(text)?;
    let sealed = blob.sealed();
    let (subject, reason) = blob.subject()?;
    Some((subject, reason, sealed))
}

pub(super) fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
