//! The names of counted keys in Redis, and so their hash slots in a cluster.

use crate::key::CLIENT_DIGITS;
use crate::key::KeyHash;

/// What decides in which hash slot of a cluster a key is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum HashSlot {
    /// The whole key, so that all servers have as much to do.
    #[default]
    Key,
    /// The client in the key, if there is one, so that one call decides all limits of a client.
    Client,
}

/// How the names of keys are made.
#[derive(Clone, Copy, Debug)]
pub struct KeyNames<'p> {
    pub prefix: &'p str,
    pub hash_slot: HashSlot,
}

/// Each key ends with so many hexadecimal digits.
pub(super) const KEY_DIGITS: usize = 32;

impl KeyNames<'_> {
    /// `PREFIX:` and the digits of the key. Where the client decides, its digits stand before them, in braces: of a name with braces
    /// Redis hashes only what is in them.
    pub fn name(self, key: KeyHash) -> String {
        let (prefix, digits) = (self.prefix, digits(key));
        match self.hash_slot {
            HashSlot::Key => format!("{prefix}:{digits}"),
            HashSlot::Client => format!("{prefix}:{{{}}}:{digits}", &digits[..CLIENT_DIGITS]),
        }
    }

    /// The name of what is leased of a key. It is not in the hash slot of the key.
    pub(super) fn leases_name(self, key: KeyHash) -> String {
        format!("{}:leases:{}", self.prefix, digits(key))
    }
}

fn digits(key: KeyHash) -> String {
    format!("{:0KEY_DIGITS$x}", key.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digits_of_the_client_stand_in_braces() {
        let key = KeyHash(0x0123_4567_89ab_cdef_fedc_ba98_7654_3210);
        let name = |hash_slot| KeyNames { prefix: "gate", hash_slot }.name(key);
        assert_eq!(name(HashSlot::Key), "gate:0123456789abcdeffedcba9876543210");
        assert_eq!(name(HashSlot::Client), "gate:{012345}:0123456789abcdeffedcba9876543210");
    }
}
