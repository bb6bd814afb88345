//! Bans as text, as Redis stores and sends them.

use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use serde::Deserialize;
use serde::Serialize;

use super::ban::Ban;
use super::ban::BanId;
use super::ban::BanRecord;
use super::ban::BanSubject;
use super::version::BanVersion;
use crate::clock::Timestamp;
use crate::key::DisplayKey;
use crate::key::KeyHash;

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

/// The part of a ban that scripts do not read. Of the values of a key it has only what logs show as well.
#[derive(Debug, Deserialize, Serialize)]
struct BanBlob {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(default)]
    limit: String,
    #[serde(default)]
    parts: Vec<(String, String)>,
    reason: String,
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
    pub(in crate::store) fn record(&self, id: BanId, now: Timestamp) -> Option<BanRecord> {
        let (subject, reason) = read_blob(&self.blob)?;
        let since = Timestamp::from_micros(now.as_micros().saturating_sub(micros(self.age)));
        let ban = Ban { id, subject, since, until: now + self.left, reason, by_operator: self.by_operator };
        Some(BanRecord { ban, step: self.step, length: self.length })
    }
}

/// Reads what Redis stores: `until length step since hand blob`. The moments are those of a clock that shows `theirs`
/// when the clock of this process shows `ours`.
pub(in crate::store) fn read_stored(id: BanId, text: &str, theirs: u64, ours: Timestamp) -> Option<BanRecord> {
    let mut words = text.splitn(6, ' ');
    let mut number = || words.next()?.parse::<u64>().ok();
    let (until, length, step, since) = (number()?, number()?, number()?, number()?);
    let (hand, blob) = (words.next()?, words.next()?);
    let (subject, reason) = read_blob(blob)?;
    let here = |moment: u64| {
        let shifted = i128::from(moment) - i128::from(theirs) + i128::from(ours.as_micros());
        Timestamp::from_micros(u64::try_from(shifted.max(0)).unwrap_or(u64::MAX))
    };
    let ban = Ban { id, subject, since: here(since), until: here(until), reason, by_operator: hand == "h" };
    Some(BanRecord { ban, step: u32::try_from(step).ok()?, length: Duration::from_micros(length) })
}

/// Writes the subject and the reason of a ban as JSON.
pub(in crate::store) fn blob(subject: &BanSubject, reason: &str) -> String {
    let reason = reason.to_owned();
    let blob = match subject {
        BanSubject::Address(network) => {
            BanBlob { address: Some(network.to_string()), key: None, limit: String::new(), parts: Vec::new(), reason }
        }
        BanSubject::Key { key, limit, named, .. } => BanBlob {
            address: None,
            key: Some(format!("{:032x}", key.0)),
            limit: limit.to_string(),
            parts: named.masked.clone(),
            reason,
        },
    };
    serde_json::to_string(&blob).expect("texts are JSON")
}

pub(super) fn read_blob(text: &str) -> Option<(BanSubject, Arc<str>)> {
    let BanBlob { address, key, limit, parts, reason } = serde_json::from_str(text).ok()?;
    let subject = match (address, key) {
        (Some(network), None) => BanSubject::Address(network.parse::<IpNet>().ok()?.trunc()),
        (None, Some(key)) => {
            let key = KeyHash(u128::from_str_radix(&key, 16).ok()?);
            BanSubject::Key {
                key,
                limit: limit.into(),
                client: None,
                named: DisplayKey { masked: parts, ..DisplayKey::default() },
            }
        }
        _ => return None,
    };
    Some((subject, reason.into()))
}

pub(super) fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
