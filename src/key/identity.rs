//! Who asks, as far as it is known for certain.

use std::fmt;
use std::str;

use super::KeyHash;
use crate::jwt::RequestClaims;
use crate::request::NotUnderstood;

/// What sessions and verified tokens prove of a request. Nothing, where neither is configured.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// The accounts whose sessions the request carries, each once.
    pub users: &'a [UserMark],
    /// Why the request may carry other sessions, too.
    pub unread_users: Option<NotUnderstood>,
    /// What the tokens claim that the request carries, where they verify.
    pub claims: &'a RequestClaims,
}

/// The mark of an account: what `user` yields, and what people see of it. Whose a session is is decided by the whole hash;
/// what is counted under a mark may be shared only by accounts that nobody can find.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct UserMark([u8; Self::DIGITS]);

impl Default for Identity<'_> {
    fn default() -> Self {
        Self { users: &[], unread_users: None, claims: RequestClaims::NONE }
    }
}

impl UserMark {
    /// A mark is so many hexadecimal digits.
    pub const DIGITS: usize = 16;

    /// The mark of the account with this hash: its first half.
    pub fn of(account: KeyHash) -> Self {
        let mut digits = [0; Self::DIGITS];
        for ([high, low], byte) in digits.as_chunks_mut().0.iter_mut().zip(account.0.to_be_bytes()) {
            *high = HEXADECIMAL[usize::from(byte >> 4)];
            *low = HEXADECIMAL[usize::from(byte & 0xf)];
        }
        Self(digits)
    }

    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).expect("digits are ASCII")
    }
}

impl fmt::Debug for UserMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

const HEXADECIMAL: &[u8; 16] = b"0123456789abcdef";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_the_first_half_of_the_hash() {
        let account = KeyHash(0x0123_4567_89ab_cdef_fedc_ba98_7654_3210);
        assert_eq!(UserMark::of(account).as_str(), "0123456789abcdef");
    }
}
