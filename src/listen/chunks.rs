//! Where a chunked body ends, so that what stands behind it is not taken for more of it. hyper reads the same and refuses
//! what is malformed; then nothing behind it is read any more.

/// Follows one body through the reads it arrives in.
#[derive(Debug, Default)]
pub(super) struct Chunks(At);

#[derive(Clone, Copy, Debug)]
enum At {
    /// In the digits of a size, so far this one.
    Size(u64),
    /// Behind them, on the same line.
    Extension(u64),
    /// So much of a chunk is left, its line end included.
    Chunk(u64),
    /// At the beginning of a line behind the last chunk, with its CR if that is all there is so far.
    LastLine { cr: bool },
    /// On a line with something on it. Its end is CR LF, and nothing less.
    Trailer { cr: bool },
}

impl Default for At {
    fn default() -> Self {
        Self::Size(0)
    }
}

impl Chunks {
    /// Looks at the next bytes, and returns how many of them belong to the body if it ends there.
    pub(super) fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut position = 0;
        while let Some(byte) = bytes.get(position) {
            position += 1;
            self.0 = match (self.0, byte) {
                (At::Chunk(left), _) => {
                    let here = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len() - position + 1);
                    position += here - 1;
                    match left - here as u64 {
                        0 => At::Size(0),
                        left => At::Chunk(left),
                    }
                }
                (At::Size(0) | At::Extension(0) | At::Trailer { cr: true }, b'\n') => At::LastLine { cr: false },
                (At::Size(size) | At::Extension(size), b'\n') => At::Chunk(size.saturating_add(LINE_END)),
                (At::Size(size), digit) if digit.is_ascii_hexdigit() => {
                    let digit = char::from(*digit).to_digit(16).unwrap_or_default();
                    At::Size(size.saturating_mul(16).saturating_add(digit.into()))
                }
                (At::Size(size) | At::Extension(size), _) => At::Extension(size),
                (At::LastLine { cr: true }, b'\n') => return Some(position),
                (At::LastLine { cr: false }, b'\r') => At::LastLine { cr: true },
                (At::LastLine { .. } | At::Trailer { .. }, byte) => At::Trailer { cr: *byte == b'\r' },
            };
        }
        None
    }
}

/// Behind a chunk.
const LINE_END: u64 = 2;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// However the bytes are cut into reads, the end is the same.
    #[track_caller]
    fn check(body: &str, behind: &str) {
        let sent = format!("{body}{behind}").into_bytes();
        for cut in 0..=sent.len() {
            let mut chunks = Chunks::default();
            let (first, second) = sent.split_at(cut);
            let end = chunks.end(first).or_else(|| Some(cut + chunks.end(second)?));
            assert_eq!(end, Some(body.len()), "cut at {cut}");
        }
    }

    #[test]
    fn a_body_ends_with_an_empty_line_behind_its_last_chunk() {
        for behind in ["", "GET / HTTP/1.1\r\n\r\n", "\r\n\r\n"] {
            check("0\r\n\r\n", behind);
            check("3\r\nabc\r\n0\r\n\r\n", behind);
            check("000a;name=\"1\"\r\n0\r\n\r\n\n\r\n.\n\r\n0 \t;last\r\n\r\n", behind);
            check("0\r\n\n\r\n\r\n", behind);
            check("1F\r\n0123456789abcdef0123456789abcde\r\n00\r\nx: y\r\nz:\r\n\r\n", behind);
        }
    }

    #[test]
    fn one_that_goes_on_has_no_end() {
        for body in ["", "0", "0\r\n", "0\r\nx: y\r\n", "5\r\n0\r\n\r\n", "ffffffffffffffffffff\r\n0\r\n\r\n"] {
            assert_eq!(Chunks::default().end(body.as_bytes()), None, "{body:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_sent_the_end_is_within_it(
            sent in "(0|1|a|;|\r\n|\r|\n|x: y){0,40}",
            cut in 0..60_usize,
        ) {
            let sent = sent.as_bytes();
            let whole = Chunks::default().end(sent);
            prop_assert!(whole.is_none_or(|end| end <= sent.len()));
            let mut chunks = Chunks::default();
            let (first, second) = sent.split_at(cut.min(sent.len()));
            let parts = chunks.end(first).or_else(|| Some(first.len() + chunks.end(second)?));
            prop_assert_eq!(parts, whole);
        }
    }
}
