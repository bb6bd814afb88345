//! What a snapshot on disk says: one state or one change after the other.

use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::key::KeyHash;
use crate::store::bans::BanId;
use crate::store::bans::saved::SavedBan;
use crate::store::sessions::known::KnownSession;

/// One state or one change. Each says what is, not what happened, so that a later one about the same thing replaces it,
/// and one that is read twice changes nothing.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) enum Record {
    /// The secret that keys are hashed with.
    Secret([u8; 16]),
    /// All keys that are signed with, and when each was made.
    Seeds(Vec<(Timestamp, [u8; 32])>),
    Ban(BanId, SavedBan),
    /// The ban was lifted, or has made way for others.
    NoBan(BanId),
    /// All known clients of a subject, the latest first, and until when each is known. It is the latest subject so far.
    KnownClients(KeyHash, Vec<(u64, Timestamp)>),
    Session(KnownSession),
    /// The session was ended, or has made way for others.
    NoSession(KeyHash),
    /// Everything before this is the whole state, and everything after it has changed since.
    Whole,
}

impl Record {
    pub(super) fn write(&self, payload: &mut Vec<u8>) {
        let written = postcard::to_extend(self, std::mem::take(payload));
        *payload = written.expect("every record can be written");
    }

    /// Reads the records of a frame; `None`: they are of another version.
    pub(super) fn read_all(mut payload: &[u8]) -> Option<Vec<Self>> {
        let mut records = Vec::new();
        while !payload.is_empty() {
            let (record, rest) = postcard::take_from_bytes(payload).ok()?;
            records.push(record);
            payload = rest;
        }
        Some(records)
    }
}
