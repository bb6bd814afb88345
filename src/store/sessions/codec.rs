//! Sessions as bytes, as Redis and gateways send them. Whole numbers have their highest byte first.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::rules::decision::SignIn;
use crate::rules::key::KeyHash;
use crate::store::sessions::sync::SessionVersion;
use crate::words::clock::Timestamp;

const HASH: usize = 16;

const KEEP: usize = 4;

/// Microseconds since the last use.
const AGE: usize = 7;

const LEARNED: usize = 2 * HASH + KEEP + AGE;

const USED: usize = HASH + AGE;

/// What Redis or another gateway tells of a session. Spans, not moments, because clocks differ.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::store) enum SessionRecord {
    Learned { session: KeyHash, account: KeyHash, keep: Duration, age: Duration },
    Forgotten(KeyHash),
    Used { session: KeyHash, age: Duration },
}

impl SessionRecord {
    /// Reads records of changes, each after its letter.
    pub(super) fn read_changes(mut bytes: &[u8]) -> Vec<Self> {
        let mut records = Vec::new();
        while let Some((letter, rest)) = bytes.split_first() {
            let read = match letter {
                b'l' => rest.split_at_checked(LEARNED).and_then(|(record, rest)| Some((read_learned(record)?, rest))),
                b'f' => rest.split_at_checked(HASH).map(|(record, rest)| (Self::Forgotten(hash(record)), rest)),
                _ => None,
            };
            let Some((record, rest)) = read else { break };
            records.push(record);
            bytes = rest;
        }
        records
    }

    /// Reads sessions that were used.
    pub(super) fn read_uses(bytes: &[u8]) -> Vec<Self> {
        let each = bytes.chunks_exact(USED).map(|record| {
            let (session, rest) = record.split_at(HASH);
            Self::Used { session: hash(session), age: Duration::from_micros(number(rest)) }
        });
        each.collect()
    }

    /// Reads sessions as a page has them.
    pub(in crate::store) fn read_learned(bytes: &[u8]) -> Vec<Self> {
        bytes.chunks_exact(LEARNED).filter_map(read_learned).collect()
    }

    /// Reads forgotten sessions as a page has them.
    pub(in crate::store) fn read_forgotten(bytes: &[u8]) -> Vec<Self> {
        bytes.chunks_exact(HASH).map(|record| Self::Forgotten(hash(record))).collect()
    }
}

/// Reads sessions that Redis does not have.
pub(in crate::store) fn read_hashes(bytes: &[u8]) -> Vec<KeyHash> {
    bytes.chunks_exact(HASH).map(hash).collect()
}

pub(in crate::store) fn write_hashes(sessions: &[KeyHash]) -> Vec<u8> {
    sessions.iter().flat_map(|session| session.0.to_be_bytes()).collect()
}

/// How long a session is remembered, as scripts read it.
pub(in crate::store) fn write_keep(keep: Duration) -> [u8; KEEP] {
    tenths_of(keep).to_be_bytes()
}

/// Writes sessions that Redis may not have.
pub(in crate::store) fn write_learned(sessions: &[KnownSession], now: Timestamp) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(sessions.len() * LEARNED);
    for KnownSession { session, account, keep, used } in sessions {
        bytes.extend_from_slice(&session.0.to_be_bytes());
        bytes.extend_from_slice(&account.0.to_be_bytes());
        bytes.extend_from_slice(&write_keep(*keep));
        bytes.extend_from_slice(&write_age(now.since(*used)));
    }
    bytes
}

/// Writes sessions that were used.
pub(in crate::store) fn write_uses(sessions: &[KnownSession], now: Timestamp) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(sessions.len() * USED);
    for KnownSession { session, used, .. } in sessions {
        bytes.extend_from_slice(&session.0.to_be_bytes());
        bytes.extend_from_slice(&write_age(now.since(*used)));
    }
    bytes
}

fn write_age(age: Duration) -> [u8; AGE] {
    let micros = u64::try_from(age.as_micros()).unwrap_or(u64::MAX).min((1 << (8 * AGE)) - 1);
    let [_, age @ ..] = micros.to_be_bytes();
    age
}

fn read_learned(record: &[u8]) -> Option<SessionRecord> {
    let (session, rest) = record.split_at_checked(HASH)?;
    let (account, rest) = rest.split_at_checked(HASH)?;
    let (keep, age) = rest.split_at_checked(KEEP)?;
    let keep = span_of(u32::try_from(number(keep)).ok()?);
    let age = Duration::from_micros(number(age));
    Some(SessionRecord::Learned { session: hash(session), account: hash(account), keep, age })
}

fn hash(bytes: &[u8]) -> KeyHash {
    KeyHash(bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte)))
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

// A session, in full.

/// A session, in full.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(in crate::store) struct KnownSession {
    pub(in crate::store) session: KeyHash,
    pub(in crate::store) account: KeyHash,
    pub(in crate::store) keep: Duration,
    pub(in crate::store) used: Timestamp,
}

impl KnownSession {
    /// The sessions that a success teaches.
    pub(in crate::store) fn learned(sign_in: &SignIn, now: Timestamp) -> impl Iterator<Item = Self> {
        let SignIn { account, keep, learned, .. } = sign_in;
        learned.iter().map(move |session| Self { session: *session, account: *account, keep: *keep, used: now })
    }
}

// Moments and spans in tenths of a second, in four bytes.

/// Sessions that a table takes over may have been used this long before it begins.
const BEFORE: u64 = 4 * 365 * 86_400 * 1_000_000;

/// In microseconds.
const TENTH: u64 = 100_000;

/// Where the moments of a table begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin(Timestamp);

/// A moment, in tenths of a second since the origin of the table.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Tenths(pub(super) u32);

impl Origin {
    pub(super) fn of(now: Timestamp) -> Self {
        Self(Timestamp::from_micros(now.as_micros().saturating_sub(BEFORE)))
    }

    pub(super) fn tenths(self, moment: Timestamp) -> Tenths {
        let micros = moment.as_micros().saturating_sub(self.0.as_micros());
        Tenths(u32::try_from(micros / TENTH).unwrap_or(u32::MAX))
    }

    pub(super) fn moment(self, tenths: Tenths) -> Timestamp {
        self.0 + Duration::from_micros(u64::from(tenths.0) * TENTH)
    }
}

impl Tenths {
    /// The time from `earlier` to this moment; zero if `earlier` is later.
    pub(super) fn since(self, earlier: Self) -> u32 {
        self.0.saturating_sub(earlier.0)
    }

    pub(super) fn is_another_second(self, other: Self) -> bool {
        self.0 / 10 != other.0 / 10
    }
}

/// The tenths of a span that have begun.
pub(super) fn tenths_of(span: Duration) -> u32 {
    u32::try_from(span.as_micros().div_ceil(u128::from(TENTH))).unwrap_or(u32::MAX)
}

pub(super) fn span_of(tenths: u32) -> Duration {
    Duration::from_micros(u64::from(tenths) * TENTH)
}

// Messages between gateways about sessions.

/// How every message begins. No word of it is a key, so that gateways of earlier versions ignore it.
const BEGINNING: &[u8] = b"sessions ";

/// A message of the channel.
#[derive(Clone, Debug)]
pub(super) struct SessionMessage {
    pub(super) version: SessionVersion,
    /// Whether it is the change that made this version, and not only uses.
    pub(super) is_change: bool,
    pub(super) records: Vec<SessionRecord>,
}

impl SessionMessage {
    /// Reads `sessions KIND BEGUN CHANGES STAMP RECORDS`; the kind is `c` for changes or `u` for uses.
    pub(super) fn read(message: &[u8]) -> Option<Self> {
        let mut parts = message.splitn(6, |byte| *byte == b' ').skip(1);
        let mut word = || std::str::from_utf8(parts.next()?).ok();
        let is_change = match word()? {
            "c" => true,
            "u" => false,
            _ => return None,
        };
        let version = SessionVersion::read([word()?, word()?, word()?].into_iter())?;
        let records = parts.next()?;
        let read = if is_change { SessionRecord::read_changes } else { SessionRecord::read_uses };
        Some(Self { version, is_change, records: read(records) })
    }
}

/// Whether a message of the channel is about sessions.
pub(in crate::store) fn is_about_sessions(message: &[u8]) -> bool {
    message.starts_with(BEGINNING)
}

// Sessions as one process of a gateway saves them for another: in a snapshot, or on the way to the process that takes
// over.

const SIZE: usize = 16 + 16 + 4 + 8;

/// A session in 44 bytes: its hash, that of its account, how long it is remembered in tenths of a second, and its last use in
/// microseconds.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct SavedSession([u8; SIZE]);

impl SavedSession {
    pub(in crate::store) fn of(known: &KnownSession) -> Self {
        let KnownSession { session, account, keep, used } = known;
        let mut bytes = [0; SIZE];
        bytes[..16].copy_from_slice(&session.0.to_le_bytes());
        bytes[16..32].copy_from_slice(&account.0.to_le_bytes());
        let tenths = u32::try_from(keep.as_millis() / 100).unwrap_or(u32::MAX);
        bytes[32..36].copy_from_slice(&tenths.to_le_bytes());
        bytes[36..].copy_from_slice(&used.as_micros().to_le_bytes());
        Self(bytes)
    }

    pub(in crate::store) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.0);
    }

    /// `None`: the last one is not whole.
    pub(in crate::store) fn read_all(bytes: &[u8]) -> Option<Vec<KnownSession>> {
        let (all, rest) = bytes.as_chunks::<SIZE>();
        rest.is_empty().then(|| all.iter().map(|session| Self(*session).known()).collect())
    }

    fn known(&self) -> KnownSession {
        let (session, rest) = self.0.split_at(16);
        let (account, rest) = rest.split_at(16);
        let (keep, used) = rest.split_at(4);
        let hash = |bytes: &[u8]| KeyHash(u128::from_le_bytes(bytes.try_into().expect("16 bytes")));
        KnownSession {
            session: hash(session),
            account: hash(account),
            keep: Duration::from_millis(u64::from(u32::from_le_bytes(keep.try_into().expect("4 bytes"))) * 100),
            used: Timestamp::from_micros(u64::from_le_bytes(used.try_into().expect("8 bytes"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_micros(1_700_000_000_000_000)
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(all in vec((any::<u128>(), any::<u128>(), 0..1_000_000_u32, 0..1_000_000_000_u64), 0..9)) {
            let sessions = all.iter().map(|(session, account, keep, age)| KnownSession {
                session: KeyHash(*session),
                account: KeyHash(*account),
                keep: span_of(*keep),
                used: Timestamp::from_micros(now().as_micros() - age),
            });
            let sessions: Vec<_> = sessions.collect();
            let learned = sessions.iter().map(|known| SessionRecord::Learned {
                session: known.session,
                account: known.account,
                keep: known.keep,
                age: now().since(known.used),
            });
            let learned: Vec<_> = learned.collect();
            let written = write_learned(&sessions, now());
            prop_assert_eq!(SessionRecord::read_learned(&written), learned.clone());
            let lettered: Vec<u8> =
                written.chunks(LEARNED).flat_map(|record| [&b"l"[..], record].concat()).chain([b'f']).chain([0; HASH]).collect();
            let expected = [&learned[..], &[SessionRecord::Forgotten(KeyHash(0))]].concat();
            prop_assert_eq!(SessionRecord::read_changes(&lettered), expected);
            let used = sessions.iter().map(|known| SessionRecord::Used { session: known.session, age: now().since(known.used) });
            prop_assert_eq!(SessionRecord::read_uses(&write_uses(&sessions, now())), used.collect::<Vec<_>>());
            let hashes: Vec<_> = sessions.iter().map(|known| known.session).collect();
            prop_assert_eq!(read_hashes(&write_hashes(&hashes)), hashes);
        }

        #[test]
        fn any_bytes_can_be_read(bytes in vec(any::<u8>(), 0..300)) {
            SessionRecord::read_changes(&bytes);
            SessionRecord::read_changes(&[b"l", &bytes[..]].concat());
            SessionRecord::read_uses(&bytes);
            SessionRecord::read_learned(&bytes);
            SessionRecord::read_forgotten(&bytes);
        }
    }
}
