//! A signature, and which key made it.

/// The id of a key, then a keyed hash.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Signature(pub [u8; SIGNATURE_LENGTH]);

/// 4 bytes of key id, 32 of HMAC-SHA256.
pub const SIGNATURE_LENGTH: usize = KEY_ID_LENGTH + 32;

pub(super) const KEY_ID_LENGTH: usize = 4;

impl Signature {
    /// Whether one key made both.
    pub fn has_key_of(&self, other: &Self) -> bool {
        self.key_id() == other.key_id()
    }

    /// The keyed hash alone.
    pub fn hash(&self) -> &[u8] {
        &self.0[KEY_ID_LENGTH..]
    }

    pub(super) fn key_id(&self) -> &[u8] {
        &self.0[..KEY_ID_LENGTH]
    }
}
