//! Sessions as one process of a gateway saves them for another: in a snapshot, or on the way to the process that takes
//! over.

use std::time::Duration;

use super::known::KnownSession;
use crate::clock::Timestamp;
use crate::key::KeyHash;

/// A session in 44 bytes: its hash, that of its account, how long it is remembered in tenths of a second, and its last use in
/// microseconds.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct SavedSession([u8; SIZE]);

const SIZE: usize = 16 + 16 + 4 + 8;

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
