//! Where the messages of a call begin and end.

/// Counts messages while their bytes come. Before each stand a byte that says whether it is compressed, and its length.
#[derive(Debug, Default)]
pub(super) struct MessageProgress {
    begun: usize,
    prefix: [u8; PREFIX],
    /// How many bytes of the prefix have come.
    known: usize,
    /// How many bytes of the message have not come yet.
    left: usize,
}

impl MessageProgress {
    /// How many messages have begun.
    pub(super) fn begun(&self) -> usize {
        self.begun
    }

    /// Whether the last message that has begun is not whole.
    pub(super) fn is_within(&self) -> bool {
        self.left > 0 || (1..PREFIX).contains(&self.known)
    }

    /// In bytes: the length of the message that has begun last. `None` while its prefix is not whole.
    pub(super) fn length(&self) -> Option<usize> {
        let [_, length @ ..] = self.prefix;
        (self.known == PREFIX).then(|| usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX))
    }

    /// Takes bytes, at least one and at most to the end of a prefix or of a message. Returns the others.
    pub(super) fn advance<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        if self.left > 0 {
            let (_, rest) = bytes.split_at(self.left.min(bytes.len()));
            self.left -= bytes.len() - rest.len();
            return rest;
        }
        let Some((first, rest)) = bytes.split_first() else { return bytes };
        if self.known == PREFIX {
            self.known = 0;
        }
        if self.known == 0 {
            self.begun += 1;
        }
        self.prefix[self.known] = *first;
        self.known += 1;
        self.left = self.length().unwrap_or_default();
        rest
    }
}

/// The bytes before a message.
const PREFIX: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    /// After all of these bytes, in parts of `part` bytes: how many messages have begun, and whether the last is whole.
    fn read(bytes: &[u8], part: usize) -> (usize, bool) {
        let mut progress = MessageProgress::default();
        for mut left in bytes.chunks(part) {
            while !left.is_empty() {
                left = progress.advance(left);
            }
        }
        (progress.begun(), !progress.is_within())
    }

    #[test]
    fn messages_begin_and_end_wherever_their_bytes_are_parted() {
        let login = b"\0\0\0\0\x07\x0a\x05login";
        let twice = [&login[..], login].concat();
        let empty = b"\0\0\0\0\0";
        for part in 1..=twice.len() {
            assert_eq!(read(b"", part), (0, true));
            assert_eq!(read(b"\0", part), (1, false));
            assert_eq!(read(&login[..11], part), (1, false));
            assert_eq!(read(login, part), (1, true));
            assert_eq!(read(&twice[..14], part), (2, false));
            assert_eq!(read(&twice, part), (2, true));
            assert_eq!(read(&[&empty[..], empty, login].concat(), part), (3, true));
        }
    }

    #[test]
    fn a_length_is_known_with_its_prefix() {
        let mut progress = MessageProgress::default();
        for byte in [0, 0xff, 0xff, 0xff] {
            assert!(progress.advance(&[byte]).is_empty());
            assert_eq!(progress.length(), None);
        }
        progress.advance(&[0xff]);
        assert_eq!(progress.length(), Some(u32::MAX as usize));
    }
}
