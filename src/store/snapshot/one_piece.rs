//! A snapshot in one piece: as a process sends it to the one that takes over, and as earlier versions wrote it to disk.

use std::io;

use super::content::SnapshotContent;
use super::file_header;
use crate::store::memory::MemoryStore;
use crate::store::sessions::known::KnownSession;
use crate::store::sessions::saved::SavedSession;

/// The first bytes; the digit is the version of the format on disk.
const MAGIC: &[u8] = b"portcullis state 1\n";

/// The version of files that are in one piece.
pub(super) const VERSION: u32 = 1;

/// Writes the content of a snapshot, for another process to [`import`].
pub fn export(store: &MemoryStore) -> io::Result<Vec<u8>> {
    encode(&SnapshotContent::of(store), |bytes| store.write_sessions(bytes))
}

/// The same without the sessions, which are sent in pieces of their own.
pub(in crate::store) fn export_without_sessions(store: &MemoryStore) -> io::Result<Vec<u8>> {
    encode(&SnapshotContent::of(store), |_| {})
}

/// Takes over the snapshot of another process; `false`: it is damaged, or of another version.
pub fn import(bytes: &[u8], store: &mut MemoryStore) -> bool {
    let Some((content, sessions)) = decode(bytes) else { return false };
    store.hash_with(content.secret);
    content.put_into(store);
    store.restore_sessions(sessions);
    true
}

/// Takes over a newer snapshot of the same process in place of the first one. `false`: it is unreadable, or that
/// process hashes keys with another secret.
pub(in crate::store) fn import_update(bytes: &[u8], store: &MemoryStore) -> bool {
    match decode(bytes) {
        Some((content, _)) if content.secret == store.secret() => {
            content.put_into(store);
            true
        }
        _ => false,
    }
}

/// `None`: it is damaged, or of another version.
pub(super) fn decode(bytes: &[u8]) -> Option<(SnapshotContent, Vec<KnownSession>)> {
    let (sum, payload) = bytes.strip_prefix(MAGIC)?.split_first_chunk::<8>()?;
    if file_header::checksum(payload) != u64::from_le_bytes(*sum) {
        return None;
    }
    let (content, sessions) = postcard::take_from_bytes(payload).ok()?;
    Some((content, SavedSession::read_all(sessions)?))
}

/// `sessions` appends the sessions. Versions that know no sessions read what stands before them.
fn encode(content: &SnapshotContent, sessions: impl FnOnce(&mut Vec<u8>)) -> io::Result<Vec<u8>> {
    let begin = MAGIC.len() + size_of::<u64>();
    let mut bytes = vec![0; begin];
    bytes = postcard::to_extend(content, bytes).map_err(io::Error::other)?;
    sessions(&mut bytes);
    let sum = file_header::checksum(&bytes[begin..]).to_le_bytes();
    bytes[..MAGIC.len()].copy_from_slice(MAGIC);
    bytes[MAGIC.len()..begin].copy_from_slice(&sum);
    Ok(bytes)
}
