//! The hash slot of a name.

use super::map::SLOTS;

/// The hash slot of a name. If the name has a part in braces, only that part counts.
pub(in crate::store::redis) fn of(name: &[u8]) -> u16 {
    crc16::State::<crc16::XMODEM>::calculate(tag(name)) % SLOTS
}

fn tag(name: &[u8]) -> &[u8] {
    let tagged = memchr::memchr(b'{', name).and_then(|open| {
        let rest = &name[open + 1..];
        memchr::memchr(b'}', rest).map(|close| &rest[..close])
    });
    tagged.filter(|tag| !tag.is_empty()).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_redis() {
        // As `CLUSTER KEYSLOT` answers.
        assert_eq!(of(b"123456789"), 12_739);
        assert_eq!(of(b"foo"), 12_182);
        assert_eq!(of(b""), 0);
    }

    #[test]
    fn what_stands_in_the_first_braces_decides() {
        assert_eq!(of(b"{user1000}.following"), of(b"user1000"));
        assert_eq!(of(b"foo{{bar}}zap"), of(b"{bar"));
        assert_eq!(of(b"foo{bar}{zap}"), of(b"bar"));
        assert_ne!(of(b"foo{}{bar}"), of(b"bar"));
        assert_ne!(of(b"{foo"), of(b"foo"));
    }
}
