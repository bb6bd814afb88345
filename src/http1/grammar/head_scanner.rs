//! Finds the end of a head.

/// Looks for the end of a head, read by read.
///
/// Empty lines at the beginning are not the end. A line that ends in LF without CR is noted.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadScanner {
    /// The beginning of the current line.
    line: usize,
    /// The bytes before this were searched.
    seen: usize,
    /// There was a line that is not empty.
    has_begun: bool,
    has_bare_line_feed: bool,
}

impl HeadScanner {
    /// The length of the head, once it is complete. `read` has all bytes since its beginning.
    pub fn find_end(&mut self, read: &[u8]) -> Option<usize> {
        while let Some(length) = memchr::memchr(b'\n', &read[self.seen..]) {
            let feed = self.seen + length;
            let has_return = feed > self.line && read[feed - 1] == b'\r';
            self.has_bare_line_feed |= !has_return;
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

    /// Whether no bytes were searched yet.
    pub fn is_fresh(&self) -> bool {
        self.seen == 0
    }

    /// Whether a line ended in LF without CR.
    pub fn has_bare_line_feed(&self) -> bool {
        self.has_bare_line_feed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The outcome is the same for every split into two reads.
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
    fn an_incomplete_head_has_no_end() {
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
