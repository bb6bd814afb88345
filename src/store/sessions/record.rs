//! Sessions as bytes, as Redis and gateways send them. Whole numbers have their highest byte first.

use std::time::Duration;

use super::known::KnownSession;
use super::tenths::span_of;
use super::tenths::tenths_of;
use crate::clock::Timestamp;
use crate::key::KeyHash;

/// What Redis or another gateway tells of a session. Spans, not moments, because clocks differ.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::store) enum SessionRecord {
    Learned { session: KeyHash, account: KeyHash, keep: Duration, age: Duration },
    Forgotten(KeyHash),
    Used { session: KeyHash, age: Duration },
}

const HASH: usize = 16;
const KEEP: usize = 4;
/// Microseconds since the last use.
const AGE: usize = 7;
const LEARNED: usize = 2 * HASH + KEEP + AGE;
const USED: usize = HASH + AGE;

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
