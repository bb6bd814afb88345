//! Splits a multipart body into headers and values, in each of the ways that applications do.

use memchr::memmem;

/// A part as one kind of application reads it.
pub(super) struct PartReading<'t> {
    /// From `Content-Disposition` to the blank line.
    pub(super) headers: &'t [u8],
    /// The text before that, which may be headers as well.
    pub(super) before: &'t [u8],
    pub(super) value: &'t [u8],
}

/// Every part, in each of the ways that applications separate its headers from its value.
pub(super) struct PartReadings<'t> {
    text: &'t [u8],
    boundaries: &'t [Vec<u8>],
    /// All parts that begin before this position were returned.
    pub(super) at: usize,
    /// The other readings of the current part, the next one last.
    pub(super) pending: Vec<PartReading<'t>>,
    readers: [LineReader<'t>; 4],
}

impl<'t> PartReadings<'t> {
    pub(super) fn new(text: &'t [u8], boundaries: &'t [Vec<u8>]) -> Self {
        let readers = LINE_RULES.map(|rules| LineReader {
            rules,
            text,
            searched: 0,
            found: None,
            delimiters: Delimiters { text, at: 0 },
        });
        Self { text, boundaries, at: 0, pending: Vec::new(), readers }
    }

    /// The text after the last boundary and before `Content-Disposition`: it may be headers.
    fn before(&self, start: usize) -> &'t [u8] {
        let before = &self.text[self.at.max(start.saturating_sub(MAX_HEADERS)).min(start)..start];
        let begins = if self.boundaries.is_empty() {
            memmem::rfind(before, b"\n--").or_else(|| memmem::rfind(before, b"\r--"))
        } else {
            let delimiters = self.boundaries.iter().filter_map(|boundary| rfind_delimiter(before, boundary));
            delimiters.max()
        };
        &before[begins.unwrap_or_default()..]
    }
}

impl<'t> Iterator for PartReadings<'t> {
    type Item = PartReading<'t>;

    fn next(&mut self) -> Option<PartReading<'t>> {
        if let Some(part) = self.pending.pop() {
            return Some(part);
        }
        let start = self.at + header_of_a_part(self.text.get(self.at..)?)?;
        let before = self.before(start);
        let end = self.text.len().min(start + MAX_HEADERS);
        let ends = self.readers.each_mut().map(|reader| reader.blank_line(start, end));
        let Some(first) = ends.iter().flatten().map(|(_, value)| *value).min() else {
            self.at = end;
            return Some(PartReading { headers: &self.text[start..end], before, value: &[] });
        };
        for (index, end) in ends.iter().enumerate().rev() {
            let Some((headers, value)) = *end else { continue };
            if ends[..index].contains(end) {
                continue;
            }
            let value = self.readers[index].delimiters.value(value);
            self.pending.push(PartReading { headers: &self.text[start..headers], before, value });
        }
        self.at = first;
        self.pending.pop()
    }
}

/// How an application separates lines.
#[derive(Clone, Copy)]
struct LineRules {
    /// Whether a carriage return alone ends a line.
    cr: bool,
    /// Whether a line feed alone ends a line.
    lf: bool,
    /// Whether a line of only white space is blank.
    trims: bool,
}

impl LineRules {
    fn next(self, text: &[u8], at: usize) -> Option<usize> {
        match text.get(at..)? {
            [b'\r', b'\n', ..] => Some(at + 2),
            [b'\r', ..] if self.cr => Some(at + 1),
            [b'\n', ..] if self.lf => Some(at + 1),
            _ => None,
        }
    }
}

/// Reads a text by one set of rules. It searches no byte twice, so that a hostile body takes no longer than others.
struct LineReader<'t> {
    rules: LineRules,
    text: &'t [u8],
    /// There is no blank line between the last one found and this position.
    searched: usize,
    /// The last blank line found: where it begins, and where the text after it begins.
    found: Option<(usize, usize)>,
    delimiters: Delimiters<'t>,
}

impl LineReader<'_> {
    /// The end of the headers that begin at `start`, and the start of the value after the blank line. `None` when there
    /// is no blank line before `end`. Each call has the same or a later `start`.
    fn blank_line(&mut self, start: usize, end: usize) -> Option<(usize, usize)> {
        if self.found.is_none_or(|(headers, _)| headers < start) {
            let from = start.max(self.searched).min(end);
            let text = &self.text[..end];
            self.found = memchr::memchr2_iter(b'\r', b'\n', &text[from..]).map(|at| from + at).find_map(|at| {
                let mut line = self.rules.next(text, at)?;
                if self.rules.trims {
                    line += text[line..].iter().take_while(|byte| b" \t".contains(byte)).count();
                }
                Some((at, self.rules.next(text, line)?))
            });
            if self.found.is_none() {
                // The last line break may begin a blank line that ends after `end`.
                let last = memchr::memrchr2(b'\r', b'\n', &text[from..]).map_or(end, |at| from + at);
                self.searched = last.saturating_sub(1).max(from);
            }
        }
        self.found.filter(|(_, value)| *value <= end)
    }
}

/// Finds lines that begin with `--`, each only once.
#[derive(Clone, Copy)]
struct Delimiters<'t> {
    text: &'t [u8],
    at: usize,
}

impl<'t> Delimiters<'t> {
    /// The text from `start` to the next such line. Each call has the same or a later `start`.
    fn value(&mut self, start: usize) -> &'t [u8] {
        self.at = self.at.max(start);
        while !self.is_delimiter(start) {
            let from = self.at + 1;
            let next = self.text.get(from..).and_then(|rest| memmem::find(rest, b"--"));
            let Some(next) = next else {
                self.at = self.text.len();
                return &self.text[start..];
            };
            self.at = from + next;
        }
        let value = &self.text[start..self.at];
        let value = value.strip_suffix(b"\n").unwrap_or(value);
        value.strip_suffix(b"\r").unwrap_or(value)
    }

    fn is_delimiter(&self, start: usize) -> bool {
        self.at > start && self.text[self.at..].starts_with(b"--") && matches!(self.text[self.at - 1], b'\r' | b'\n')
    }
}

/// Whether a text holds a header that names a part.
pub(crate) fn names_a_part(text: &[u8]) -> bool {
    header_of_a_part(text).is_some()
}

/// The position of the next header that names a part: `Content-Disposition`, or `Content-ID` in some applications.
fn header_of_a_part(text: &[u8]) -> Option<usize> {
    let is_one = |rest: &[u8]| {
        ["disposition", "id"]
            .iter()
            .any(|word| rest.get(..word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word.as_bytes())))
    };
    find_all(text, b"content-").find(|at| is_one(&text[at + 8..]))
}

/// The positions of `word` in any case. `word` is in lower case.
pub(super) fn find_all<'t>(text: &'t [u8], word: &'static [u8]) -> impl Iterator<Item = usize> + use<'t> {
    let first = word[0];
    memchr::memchr2_iter(first, first.to_ascii_uppercase(), text)
        .filter(move |at| text[*at..].get(..word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word)))
}

fn rfind_delimiter(text: &[u8], boundary: &[u8]) -> Option<usize> {
    memmem::rfind_iter(text, boundary).find(|at| text[..*at].ends_with(b"--"))
}

/// From the most lenient rules to the strictest.
const LINE_RULES: [LineRules; 4] = [
    LineRules { cr: true, lf: true, trims: true },
    LineRules { cr: true, lf: true, trims: false },
    LineRules { cr: false, lf: true, trims: false },
    LineRules { cr: false, lf: false, trims: false },
];

/// In bytes: of longer headers only this much is read.
const MAX_HEADERS: usize = 2048;
