//! Messages between gateways about sessions.

use super::record::SessionRecord;
use super::version::SessionVersion;

/// A message of the channel.
#[derive(Clone, Debug)]
pub(super) struct SessionMessage {
    pub(super) version: SessionVersion,
    /// Whether it is the change that made this version, and not only uses.
    pub(super) is_change: bool,
    pub(super) records: Vec<SessionRecord>,
}

/// How every message begins. No word of it is a key, so that gateways of earlier versions ignore it.
const BEGINNING: &[u8] = b"sessions ";

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
