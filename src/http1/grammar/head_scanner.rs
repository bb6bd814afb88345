//! Where a head ends.

/// Looks for the end of a head, through the reads it arrives in.
///
/// Empty lines before the first one with something on it are not the end. A line may end in a bare LF, which is noted.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadScanner {
    /// Where the line under way begins.
    line: usize,
    /// Up to here there is no further line end.
    seen: usize,
    /// There was a line with something on it.
    has_begun: bool,
    is_bare: bool,
}

impl HeadScanner {
    /// The length of the head, once it is whole. `read` is everything since its beginning.
    pub fn find_end(&mut self, read: &[u8]) -> Option<usize> {
        while let Some(length) = memchr::memchr(b'\n', &read[self.seen..]) {
            let feed = self.seen + length;
            let has_return = feed > self.line && read[feed - 1] == b'\r';
            self.is_bare |= !has_return;
            let is_empty = feed - usize::from(has_return) == self.line;
            self.seen = feed + 1;
            self.line = self.seen;
            if is_empty && self.has_begun {
                return Some(self.seen);
            }
            self.has_begun |= !is_empty;
        }
        self.seen = read.len();
        None
    }

    /// Whether it has not looked at anything yet.
    pub fn is_fresh(&self) -> bool {
        self.seen == 0
    }

    /// Whether a line ended in LF without CR.
    pub fn has_bare_line_feed(&self) -> bool {
        self.is_bare
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However the bytes are cut into reads, the outcome is the same.
    #[track_caller]
    fn check(read: &str, end: Option<usize>, is_bare: bool) {
        for cut in 0..=read.len() {
            let mut scanner = HeadScanner::default();
            let found = scanner.find_end(&read.as_bytes()[..cut]).or_else(|| scanner.find_end(read.as_bytes()));
            assert_eq!((found, scanner.has_bare_line_feed()), (end, is_bare), "{read:?} cut at {cut}");
        }
    }

    #[test]
    fn a_head_ends_with_an_empty_line() {
        check("GET / HTTP/1.1\r\n\r\n", Some(18), false);
        check("GET / HTTP/1.1\r\nHost: a\r\n\r\nbody", Some(27), false);
        check("\r\n\r\nGET / HTTP/1.1\r\n\r\n", Some(22), false);
    }

    #[test]
    fn one_that_goes_on_has_no_end() {
        for head in ["", "\r\n", "\r\n\r\n", "GET / HTTP/1.1", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\n\r"] {
            check(head, None, false);
        }
    }

    #[test]
    fn bare_line_feeds_end_lines_and_are_noted() {
        check("HTTP/1.1 200 OK\n\n", Some(17), true);
        check("HTTP/1.1 200 OK\r\nA: b\n\r\n", Some(24), true);
        check("\nHTTP/1.1 200 OK\r\n\r\n", Some(20), true);
        check("HTTP/1.1 200 OK\r\nA: b\n", None, true);
    }
}
