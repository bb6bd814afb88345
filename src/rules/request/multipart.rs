//! Reads multipart bodies as lenient applications do.

use std::borrow::Cow;

use memchr::memmem;

use crate::rules::request::text::is_read_as;
use crate::rules::request::urlencoded;
use crate::rules::request::urlencoded::Escapes;
use crate::words::base64;

// Fields of multipart bodies, found by the headers of their parts. Boundaries are no help: applications read them
// differently.

/// The names of one part; an honest client sends one.
const MAX_NAMES: usize = 8;

/// In bytes: longer than the name of any field.
const MAX_NAME: usize = 256;

/// Far more different values than a key takes: a request with fewer is refused already.
pub(crate) const MAX_VALUES: usize = 64;

/// Every value that some application may read for the field `name`, in order. `boundaries` are the boundaries in
/// `Content-Type`.
///
/// The text after a `Content-Disposition` with that name is a value, up to the next line that begins with `--`. An
/// encoded value is yielded as sent and decoded. Files are read like other fields.
pub(crate) fn values<'t>(text: &'t [u8], boundaries: &'t [Vec<u8>], name: &str) -> Vec<Cow<'t, str>> {
    let mut values = Vec::new();
    for part in PartReadings::new(text, boundaries) {
        if names(part.headers).any(|sent| is_read_as(&sent, name)) {
            part.read(boundaries, &mut |value| {
                if values.len() < MAX_VALUES && !values.contains(&value) {
                    values.push(value);
                }
            });
        }
    }
    values
}

impl<'t> PartReading<'t> {
    fn read(&self, boundaries: &[Vec<u8>], found: &mut dyn FnMut(Cow<'t, str>)) {
        let value = self.value;
        // Some applications end a value at the boundary, without a line break before it.
        let end = boundaries.iter().filter_map(|boundary| {
            memmem::find_iter(value, boundary).find(|at| value[..*at].ends_with(b"--")).map(|at| at - 2)
        });
        if let Some(end) = end.min() {
            found(urlencoded::text(Cow::Borrowed(&value[..end])));
        } else {
            found(urlencoded::text(Cow::Borrowed(value)));
        }
        if self.encodings().any(|named| named.eq_ignore_ascii_case(b"base64")) {
            for decoded in base64::readings(value) {
                found(urlencoded::text(Cow::Owned(decoded)));
            }
        }
        if self.encodings().any(|named| named.eq_ignore_ascii_case(b"quoted-printable")) {
            found(urlencoded::text(Cow::Owned(quoted_printable(value))));
        }
    }

    fn encodings(&self) -> impl Iterator<Item = &'t [u8]> {
        let (before, headers) = (self.before, self.headers);
        [before, headers].into_iter().flat_map(|block| {
            find_all(block, b"content-transfer-encoding").map(|at| {
                let value = block[at + 25..].trim_ascii_start();
                let value = value.strip_prefix(b":").unwrap_or(value).trim_ascii_start();
                let end = value.iter().position(|byte| byte.is_ascii_whitespace() || *byte == b';');
                &value[..end.unwrap_or(value.len())]
            })
        })
    }
}

/// Every reading of every `name` parameter.
fn names(headers: &[u8]) -> impl Iterator<Item = Cow<'_, str>> {
    let ids = find_all(headers, b"content-id").map(|at| {
        let id = headers[at + 10..].trim_ascii_start();
        let id = id.strip_prefix(b":").unwrap_or(id);
        let id = id.split(|byte| b"\r\n".contains(byte)).next().unwrap_or_default();
        urlencoded::text(Cow::Borrowed(id))
    });
    let names = find_names(headers).take(MAX_NAMES).flat_map(|at| {
        let rest = &headers[at + 4..];
        let rest = rest[..rest.len().min(MAX_NAME)].trim_ascii_start();
        let mut readings: Vec<Cow<'_, str>> = Vec::new();
        if let Some(value) = rest.strip_prefix(b"=") {
            readings.extend(spellings(value.trim_ascii_start()).into_iter().flatten().map(urlencoded::text));
        } else if let Some(value) = rest.strip_prefix(b"*").and_then(|rest| rest.split(|byte| *byte == b'=').nth(1)) {
            // name*=utf-8''user%6eame
            let value = value.split(|byte| b";\r\n".contains(byte)).next().unwrap_or_default();
            let value = value.rsplit(|byte| *byte == b'\'').next().unwrap_or_default();
            readings.push(urlencoded::text(Cow::Borrowed(value)));
        }
        let decoded = |name: &Cow<'_, str>| urlencoded::decode(name.as_bytes(), Escapes::default());
        let more: Vec<_> = readings.iter().filter_map(decoded).map(|name| urlencoded::text(Cow::Owned(name))).collect();
        readings.into_iter().chain(more)
    });
    ids.chain(names)
}

/// A parameter's value as read by applications that know quotes and backslashes, only quotes, or neither.
fn spellings(value: &[u8]) -> [Option<Cow<'_, [u8]>>; 3] {
    let line = &value[..memchr::memchr3(b';', b'\r', b'\n', value).unwrap_or(value.len())];
    let [quote @ (b'"' | b'\''), inner @ ..] = value else {
        let word = line.split(|byte| b", \t".contains(byte)).next().unwrap_or_default();
        return [Some(Cow::Borrowed(line.trim_ascii())), Some(Cow::Borrowed(word)), None];
    };
    let mut escaped = Vec::new();
    let mut bytes = inner.iter();
    while let Some(byte) = bytes.next().filter(|byte| *byte != quote) {
        escaped.extend(if *byte == b'\\' { bytes.next() } else { Some(byte) });
    }
    let plain = inner.split(|byte| byte == quote).next().unwrap_or_default();
    [Some(Cow::Owned(escaped)), Some(Cow::Borrowed(plain)), Some(Cow::Borrowed(line.trim_ascii()))]
}

/// The positions of `name` as a word of its own, not as the end of `filename`.
fn find_names(headers: &[u8]) -> impl Iterator<Item = usize> {
    find_all(headers, b"name").filter(|at| {
        let before = headers[..*at].last().copied().unwrap_or(b';');
        !before.is_ascii_alphanumeric() && !b"-_".contains(&before)
    })
}

fn quoted_printable(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, others)) = rest.split_first() {
        rest = match rest {
            [b'=', b'\r', b'\n', others @ ..] | [b'=', b'\n', others @ ..] => others,
            [b'=', high, low, others @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                let digit = |byte: u8| {
                    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok()).unwrap_or_default()
                };
                plain.push(digit(*high) * 16 + digit(*low));
                others
            }
            _ => {
                plain.push(*first);
                others
            }
        };
    }
    plain
}

// Splits a multipart body into headers and values, in each of the ways that applications do.

/// From the most lenient rules to the strictest.
const LINE_RULES: [LineRules; 4] = [
    LineRules { cr: true, lf: true, trims: true },
    LineRules { cr: true, lf: true, trims: false },
    LineRules { cr: false, lf: true, trims: false },
    LineRules { cr: false, lf: false, trims: false },
];

/// In bytes: of longer headers only this much is read.
const MAX_HEADERS: usize = 2048;

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

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz {
    //! The fuzz target of this parser.

    use super::{MAX_VALUES, names_a_part, values};
    #[cfg(test)]
    use crate::words::corpus;

    /// Values are bounded in number and size, with the boundary of the body and without one.
    pub fn check(bytes: &[u8]) {
        let line = bytes.split(|byte| b"\r\n".contains(byte)).next().unwrap_or_default();
        let of_the_body = line.strip_prefix(b"--").unwrap_or(line).to_vec();
        for boundaries in [&[][..], &[of_the_body][..]] {
            let values = values(bytes, boundaries, "username");
            assert!(names_a_part(bytes) || values.is_empty(), "values without parts");
            assert!(values.len() <= MAX_VALUES, "{} values", values.len());
            let longest = values.iter().map(|value| value.len()).max().unwrap_or_default();
            // A byte that is not UTF-8 becomes a character of three.
            assert!(longest <= 3 * bytes.len(), "{longest} bytes of {}", bytes.len());
        }
    }

    #[cfg(test)]
    #[test]
    fn the_corpus_keeps_its_promises() {
        corpus::feed("multipart", check);
    }
}

#[cfg(test)]
mod tests;
