//! Bans that gateways tell each other of: how they are written, and in which order they are believed.

use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use serde::Deserialize;
use serde::Serialize;

use super::ban::Ban;
use super::ban::BanId;
use super::ban::BanSubject;
use super::ban::Record;
use super::table::Bans;
use crate::clock::Timestamp;
use crate::key::DisplayKey;
use crate::key::KeyHash;

/// Which changes of the bans in Redis are known: how many there were since they began, and a number drawn then.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(in crate::store) struct Version {
    pub(super) begun: u64,
    pub(super) changes: u64,
}

/// What a gateway did.
#[derive(Clone, Debug)]
pub(in crate::store) enum Change {
    Ban(Box<Record>),
    Lift(BanId),
}

/// A ban as the script tells of it: spans, no moments.
#[derive(Clone, Debug)]
pub(in crate::store) struct Told {
    pub version: Version,
    left: Duration,
    length: Duration,
    step: u32,
    age: Duration,
    by_operator: bool,
    blob: String,
}

/// What is written of a ban beside its spans. Of the values of a key, only what is shown anyway.
#[derive(Debug, Deserialize, Serialize)]
struct Blob {
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

impl Version {
    /// Two words; `None`: there are no bans.
    pub(in crate::store) fn read(words: &[String]) -> Option<Self> {
        let [begun, changes, ..] = words else { return None };
        Some(Self { begun: u64::from_str_radix(begun, 16).ok()?, changes: changes.parse().ok()? })
    }

    /// Whether nothing was lost between the two.
    pub(in crate::store) fn follows(self, before: Self) -> bool {
        self.begun == before.begun && self.changes >= before.changes
    }

    /// That of the change after this one.
    pub(super) fn next(self) -> Self {
        Self { changes: self.changes.wrapping_add(1), ..self }
    }
}

impl Told {
    /// `left length step age hand blob`, the blob being the last word.
    pub(in crate::store) fn read(version: Version, words: &[impl AsRef<str>]) -> Option<Self> {
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

    /// By the clock of this process.
    pub(in crate::store) fn record(&self, id: BanId, now: Timestamp) -> Option<Record> {
        let (subject, reason) = unblob(&self.blob)?;
        let since = Timestamp::from_micros(now.as_micros().saturating_sub(micros(self.age)));
        let ban = Ban { id, subject, since, until: now + self.left, reason, by_operator: self.by_operator };
        Some(Record { ban, step: self.step, length: self.length })
    }
}

/// What Redis keeps: `until length step since hand blob`, by a clock that shows `theirs` where ours shows `ours`.
pub(in crate::store) fn stored(id: BanId, text: &str, theirs: u64, ours: Timestamp) -> Option<Record> {
    let mut words = text.splitn(6, ' ');
    let mut number = || words.next()?.parse::<u64>().ok();
    let (until, length, step, since) = (number()?, number()?, number()?, number()?);
    let (hand, blob) = (words.next()?, words.next()?);
    let (subject, reason) = unblob(blob)?;
    let here = |moment: u64| {
        let shifted = i128::from(moment) - i128::from(theirs) + i128::from(ours.as_micros());
        Timestamp::from_micros(u64::try_from(shifted.max(0)).unwrap_or(u64::MAX))
    };
    let ban = Ban { id, subject, since: here(since), until: here(until), reason, by_operator: hand == "h" };
    Some(Record { ban, step: u32::try_from(step).ok()?, length: Duration::from_micros(length) })
}

/// A ban with the steps before it, as another process of this gateway knows it. Moments and spans are microseconds.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(in crate::store) struct Written {
    what: String,
    since: u64,
    until: u64,
    by_operator: bool,
    step: u32,
    length: u64,
}

impl Written {
    pub(in crate::store) fn of(record: &Record) -> Self {
        let Record { ban, step, length } = record;
        Self {
            what: blob(&ban.subject, &ban.reason),
            since: ban.since.as_micros(),
            until: ban.until.as_micros(),
            by_operator: ban.by_operator,
            step: *step,
            length: micros(*length),
        }
    }

    /// `None`: it is no ban.
    pub(in crate::store) fn read(&self) -> Option<Record> {
        let (subject, reason) = unblob(&self.what)?;
        let moment = Timestamp::from_micros;
        let (since, until) = (moment(self.since), moment(self.until));
        let ban = Ban { id: subject.id(), subject, since, until, reason, by_operator: self.by_operator };
        Some(Record { ban, step: self.step, length: Duration::from_micros(self.length) })
    }
}

/// A message on the channel: `ban BEGUN CHANGES ID LEFT LENGTH STEP AGE HAND BLOB` or `unban BEGUN CHANGES ID`. What is
/// neither says nothing.
pub(in crate::store) fn heard(bans: &Bans, message: &[u8]) {
    let read = || {
        let text = std::str::from_utf8(message).ok()?;
        let words: Vec<&str> = text.splitn(10, ' ').collect();
        let version = Version::read(&[(*words.get(1)?).to_owned(), (*words.get(2)?).to_owned()])?;
        let id: BanId = words.get(3)?.parse().ok()?;
        match words[0] {
            "unban" => Some((version, Change::Lift(id))),
            _ => Some((version, Change::Ban(Told::read(version, words.get(4..)?)?.record(id, bans.now())?.into()))),
        }
    };
    if let Some((version, change)) = read() {
        bans.heard(version, &change);
    }
}

/// Whether a message is one of ours.
pub(in crate::store) fn is_about_bans(message: &[u8]) -> bool {
    message.starts_with(b"ban ") || message.starts_with(b"unban ")
}

pub(in crate::store) fn blob(subject: &BanSubject, reason: &str) -> String {
    let reason = reason.to_owned();
    let blob = match subject {
        BanSubject::Address(network) => {
            Blob { address: Some(network.to_string()), key: None, limit: String::new(), parts: Vec::new(), reason }
        }
        BanSubject::Key { key, limit, named, .. } => Blob {
            address: None,
            key: Some(format!("{:032x}", key.0)),
            limit: limit.to_string(),
            parts: named.masked.clone(),
            reason,
        },
    };
    serde_json::to_string(&blob).expect("texts are JSON")
}

fn unblob(text: &str) -> Option<(BanSubject, Arc<str>)> {
    let Blob { address, key, limit, parts, reason } = serde_json::from_str(text).ok()?;
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

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::clock::Clock;
    use crate::clock::ManualClock;

    fn bans() -> Bans {
        Bans::new(Clock::Manual(ManualClock::at(Timestamp::from_micros(1_000_000_000))))
    }

    fn subject() -> BanSubject {
        let named = DisplayKey { masked: vec![("param.user".into(), "a***".into())], ..DisplayKey::default() };
        BanSubject::Key { key: KeyHash(7), limit: "login guesses".into(), named, client: None }
    }

    #[test]
    fn what_one_gateway_tells_another_knows() {
        let bans = bans();
        let id = subject().id();
        let blob = blob(&subject(), "three times \"wrong\"");
        heard(&bans, format!("ban 1 1 {id} 5000000 9000000 2 4000000 l {blob}").as_bytes());
        let told = bans.find(id).expect("it is known");
        assert_eq!((told.subject, &*told.reason, told.by_operator), (subject(), "three times \"wrong\"", false));
        assert_eq!(bans.left(KeyHash(7)), Some(Duration::from_secs(5)));
        for nonsense in ["ban", "ban 1 2", "unban 1 2 x", "ban 1 2 3 4", "unban"] {
            heard(&bans, nonsense.as_bytes());
        }
        heard(&bans, b"ban \xff");
        assert_eq!(bans.count(), 1);
        heard(&bans, format!("unban 1 2 {id}").as_bytes());
        assert_eq!(bans.count(), 0);
    }

    proptest! {
        #[test]
        fn any_message_is_heard(
            words in prop::collection::vec(
                prop_oneof![any::<u64>().prop_map(|number| number.to_string()), "[0-9a-f]{0,32}", "[ -~]{0,12}", Just(blob(&subject(), "why"))],
                0..10,
            ),
            noise in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let bans = bans();
            for start in ["ban", "unban", "x"] {
                heard(&bans, format!("{start} {}", words.join(" ")).as_bytes());
                heard(&bans, &[start.as_bytes(), &noise].concat());
            }
        }

        #[test]
        fn any_numbers_make_a_ban_that_can_be_kept(
            begun in any::<u64>(),
            changes in prop_oneof![any::<u64>(), Just(u64::MAX)],
            spans in prop::array::uniform3(any::<u64>()),
            step in any::<u32>(),
            theirs in any::<u64>(),
        ) {
            let bans = bans();
            let ([left, length, age], id) = (spans, subject().id());
            let blob = blob(&subject(), "why");
            heard(&bans, format!("ban {begun:x} {changes} {id} {left} {length} {step} {age} l {blob}").as_bytes());
            heard(&bans, format!("ban {begun:x} {changes} {id} {left} {length} {step} {age} l {blob}").as_bytes());
            heard(&bans, format!("unban {begun:x} {} {id}", changes.wrapping_add(1)).as_bytes());
            let kept = stored(id, &format!("{left} {length} {step} {age} h {blob}"), theirs, bans.now());
            prop_assert!(kept.is_some_and(|record| record.ban.id == id && record.ban.by_operator));
        }
    }
}
