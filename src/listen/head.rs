//! Line endings of a request's head, seen before hyper sees them: it would take a bare LF for one, and a proxy in
//! front of us may not.

/// Follows one head through the reads it arrives in.
#[derive(Debug, Default)]
pub(super) struct HeadLines {
    /// The length of the line under way, without its CR.
    line: usize,
    /// The last byte was a CR.
    cr: bool,
    at: At,
    /// There was a bare LF.
    poisoned: bool,
}

/// Empty lines before the first one with something on it are not the end.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum At {
    #[default]
    Before,
    Inside,
    Behind,
}

impl HeadLines {
    /// Whether it will be refused, however it goes on.
    pub(super) fn is_poisoned(&self) -> bool {
        self.poisoned
    }

    /// Looks at the next bytes of the head and turns each bare LF into a NUL, which nothing in a head may contain:
    /// hyper then answers 400 and closes. Returns how many of them belong to the head if it ends there.
    pub(super) fn poison_bare_line_feeds(&mut self, bytes: &mut [u8]) -> Option<usize> {
        let mut start = 0;
        while self.at != At::Behind {
            let Some(length) = memchr::memchr(b'\n', &bytes[start..]) else {
                self.line += bytes.len() - start;
                if let Some(last) = bytes.last() {
                    self.cr = *last == b'\r';
                }
                return None;
            };
            let end = start + length;
            let cr = if length > 0 { bytes[end - 1] == b'\r' } else { self.cr };
            if cr {
                // The CR is counted in one of the two.
                let text = self.line + length - 1;
                self.at = match self.at {
                    _ if text > 0 => At::Inside,
                    At::Inside => At::Behind,
                    before => before,
                };
            } else {
                bytes[end] = 0;
                self.poisoned = true;
            }
            self.line = 0;
            self.cr = false;
            start = end + 1;
        }
        (start > 0).then_some(start)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// However the bytes are cut into reads, the outcome is the same.
    #[track_caller]
    fn check(input: &[u8], expected: &[u8]) {
        for cut in 0..=input.len() {
            let mut bytes = input.to_vec();
            let mut lines = HeadLines::default();
            let (first, second) = bytes.split_at_mut(cut);
            lines.poison_bare_line_feeds(first);
            lines.poison_bare_line_feeds(second);
            assert_eq!(bytes.escape_ascii().to_string(), expected.escape_ascii().to_string(), "cut at {cut}");
        }
    }

    #[test]
    fn a_bare_line_feed_in_a_head_is_poisoned() {
        check(b"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\0X: b\r\n\r\n");
        check(b"GET / HTTP/1.1\n\n", b"GET / HTTP/1.1\0\0");
        check(b"\nGET / HTTP/1.1\r\n\r\n", b"\0GET / HTTP/1.1\r\n\r\n");
        check(b"GET / HTTP/1.1\r\nHost: a\r\n\n", b"GET / HTTP/1.1\r\nHost: a\r\n\0");
        check(b"\r\r\n\n\r\n\n", b"\r\r\n\0\r\n\n");
        check(b"GET / HTTP/1.1\r\nHost: a\n\r\n", b"GET / HTTP/1.1\r\nHost: a\0\r\n");
    }

    #[test]
    fn what_follows_a_head_does_not_belong_to_it() {
        let ends = |head: &str| HeadLines::default().poison_bare_line_feeds(&mut head.as_bytes().to_vec());
        assert_eq!(ends("GET / HTTP/1.1\r\n\r\n"), Some(18));
        assert_eq!(ends("\r\nGET / HTTP/1.1\r\n\r\n\r\n"), Some(20));
        assert_eq!(ends("GET / HTTP/1.1\r\n"), None);
    }

    #[test]
    fn a_proper_head_and_what_follows_it_are_left_alone() {
        check(b"POST / HTTP/1.1\r\nHost: a\r\n\r\none\ntwo\n", b"POST / HTTP/1.1\r\nHost: a\r\n\r\none\ntwo\n");
        check(b"\r\n\r\nGET / HTTP/1.1\r\n\r\n\n", b"\r\n\r\nGET / HTTP/1.1\r\n\r\n\n");
    }

    proptest! {
        #[test]
        fn no_bare_line_feed_of_a_head_is_left_wherever_the_reads_are_cut(
            input in "(\r\n|\n|\r|a|:){0,40}",
            cuts in prop::collection::vec(0..41_usize, 0..4),
        ) {
            let mut whole = input.clone().into_bytes();
            HeadLines::default().poison_bare_line_feeds(&mut whole);
            let text = String::from_utf8_lossy(&whole).into_owned();
            let lines = text.trim_start_matches("\r\n");
            let head = lines.split_once("\r\n\r\n").map_or(lines, |(head, _)| head);
            // A poisoned head is none, wherever it ends.
            let is_plain = !head.replace("\r\n", "").contains('\n');
            prop_assert!(is_plain || text.contains('\0'), "{}", text.escape_debug());

            let mut piecemeal = input.into_bytes();
            let mut lines = HeadLines::default();
            let mut rest = piecemeal.as_mut_slice();
            for cut in cuts {
                let (piece, behind) = rest.split_at_mut(cut.min(rest.len()));
                lines.poison_bare_line_feeds(piece);
                rest = behind;
            }
            lines.poison_bare_line_feeds(rest);
            prop_assert_eq!(piecemeal, whole);
        }
    }
}
