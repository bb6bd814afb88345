//! The same path to applications that decode and resolve sooner or later than others, know other separators, or drop what
//! others keep.

use std::borrow::Cow;

use super::CanonicalPath;
use super::MAX_DECODE_ROUNDS;
use super::decode;
use super::decode_once;
use super::script;
use super::windows;
use crate::request::text::is_blank;

/// What a path may be taken for, beside its canonical form.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct PathReadings {
    pub(super) found: Vec<CanonicalPath<'static>>,
    /// Some were not looked for: there are more than any honest path has.
    pub(super) is_cut_short: bool,
}

/// The readings of a path that is canonical as it came.
pub(super) fn of_canonical(path: &str) -> PathReadings {
    let mut search = ReadingSearch::beside(path);
    search.scripts_in(path);
    search.readings
}

/// The readings of a path in any other spelling. `plain` is it decoded to the end.
pub(super) fn of(path: &str, plain: &str, canonical: &str) -> PathReadings {
    let mut search = ReadingSearch::beside(canonical);
    search.add_variants(canonical);
    if let Some(text) = without_broken_escapes(path) {
        search.in_every_grammar(&decode_once(&text).unwrap_or(text));
    }
    if is_ambiguous(path, plain) {
        let mut text = Cow::Borrowed(path);
        for _ in 0..=MAX_DECODE_ROUNDS {
            search.in_every_grammar(&text);
            match decode_once(&text) {
                Some(plain) => text = Cow::Owned(plain),
                None => break,
            }
        }
    }
    search.readings
}

/// Whether applications may see different paths. A name with a blank or an accent is none that they differ about.
fn is_ambiguous(path: &str, plain: &str) -> bool {
    let slashes = |text: &str| text.bytes().filter(|byte| *byte == b'/').count();
    let ends_with_dot =
        |(at, _): (usize, char)| matches!(plain.as_bytes().get(at + 1), None | Some(b'/' | b';' | b' '));
    slashes(path) != slashes(plain)
        || plain.contains(['\\', '\0', '?', '#'])
        || plain.contains("/;")
        || plain.char_indices().filter(|(_, char)| *char == '.').any(ends_with_dot)
}

/// What an application takes for the structure of a path.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "applications answer each of these by itself")]
struct Grammar {
    /// `\` separates segments.
    backslash: bool,
    /// What follows a `;` is no part of a segment.
    params: bool,
    /// Several slashes are one.
    merging: bool,
    /// `.` and `..` are names like others.
    literal: bool,
}

impl Grammar {
    /// Those that differ about this text.
    fn of(text: &str) -> impl Iterator<Item = Self> {
        let choices = |differ: bool, usual: bool| [Some(usual), differ.then_some(!usual)].into_iter().flatten();
        let (backslashes, params) = (text.contains('\\'), text.contains(';'));
        let (repeated, dots) = (text.contains("//"), text.contains("/.") || text.contains("\\."));
        choices(backslashes, true).flat_map(move |backslash| {
            choices(params, true).flat_map(move |params| {
                choices(repeated, true).flat_map(move |merging| {
                    choices(dots, false).map(move |literal| Self { backslash, params, merging, literal })
                })
            })
        })
    }

    /// Resolves the dots that are dots in this grammar, and only then takes the rest of the spelling away.
    fn read(self, path: &str) -> String {
        let mut segments: Vec<&str> = Vec::new();
        for segment in path.split(|c| c == '/' || (self.backslash && c == '\\')).skip(1) {
            let name = if self.params { segment.split(';').next().unwrap_or_default() } else { segment };
            match name {
                "" if self.merging => {}
                "." if !self.literal => {}
                ".." if !self.literal => _ = segments.pop(),
                name => segments.push(name),
            }
        }
        let mut reading = String::with_capacity(path.len() + 1);
        for segment in segments {
            let plain = decode(segment);
            let name = match plain.split(';').next() {
                Some("") | None => &*plain,
                Some(name) => name,
            };
            if !name.is_empty() {
                reading.push('/');
                // To this application it is within the segment, and it must not be a separator to a pattern.
                reading.push_str(&name.replace('/', "%2f"));
            }
        }
        trimmed(&reading).to_owned()
    }
}

/// The readings found so far, and how much may still be done to find more: whoever asks chooses the path.
struct ReadingSearch<'c> {
    canonical: &'c str,
    readings: PathReadings,
    /// In bytes that may be read.
    work: usize,
    /// In bytes that may be kept.
    room: usize,
}

impl<'c> ReadingSearch<'c> {
    fn beside(canonical: &'c str) -> Self {
        Self { canonical, readings: PathReadings::default(), work: MAX_WORK, room: MAX_KEPT }
    }

    fn in_every_grammar(&mut self, text: &str) {
        for grammar in Grammar::of(text) {
            if !self.spend(text.len()) {
                return;
            }
            let reading = grammar.read(text);
            // What names a file ends at a NUL, and what becomes a target once more at its query.
            for ends in [&['\0'][..], &['?', '#'][..]] {
                if let Some(end) = reading.find(ends) {
                    self.found(trimmed(&reading[..end]));
                }
            }
            self.found(&reading);
        }
    }

    fn found(&mut self, reading: &str) {
        if self.add(reading) {
            self.add_variants(reading);
        }
    }

    /// Adds what a reading is to those who run scripts, and to Windows.
    fn add_variants(&mut self, reading: &str) {
        self.scripts_in(reading);
        let session_apart = windows::without_session(reading);
        let in_windows = windows::named(session_apart.as_deref().unwrap_or(reading));
        for other in session_apart.into_iter().chain([in_windows]) {
            if other != reading && self.add(&other) {
                self.scripts_in(&other);
            }
        }
    }

    fn scripts_in(&mut self, reading: &str) {
        if script::is_in(reading) {
            script::readings(reading, |reading| _ = self.add(reading));
        }
    }

    /// Whether it is a new one.
    fn add(&mut self, reading: &str) -> bool {
        let known = |reading: &str| self.readings.found.iter().any(|known| known.cased() == reading);
        if reading == self.canonical || known(reading) || !self.spend(reading.len()) {
            return false;
        }
        match self.room.checked_sub(reading.len().max(MIN_KEPT)) {
            Some(room) => {
                self.room = room;
                self.readings.found.push(CanonicalPath::resolved(reading.to_owned()));
            }
            None => self.readings.is_cut_short = true,
        }
        !self.readings.is_cut_short
    }

    fn spend(&mut self, work: usize) -> bool {
        let left = self.work.checked_sub(work);
        self.work = left.unwrap_or_default();
        self.readings.is_cut_short |= left.is_none();
        left.is_some()
    }
}

/// A path without the slashes and blanks at its end.
fn trimmed(path: &str) -> &str {
    match path.trim_end_matches(|c| c == '/' || is_blank(c)) {
        "" => "/",
        path => path,
    }
}

/// A path as uWSGI decodes it: an escape that breaks off is nothing, one of other letters than digits is a NUL. `None`
/// where every escape is one.
fn without_broken_escapes(path: &str) -> Option<String> {
    let mut text = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    let mut is_broken = false;
    while let Some(at) = memchr::memchr(b'%', rest) {
        text.extend_from_slice(&rest[..at]);
        rest = match &rest[at + 1..] {
            [high, low, behind @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                text.extend_from_slice(&[b'%', *high, *low]);
                behind
            }
            behind => {
                is_broken = true;
                if behind.len() >= 2 {
                    text.extend_from_slice(b"%00");
                }
                behind.get(2..).unwrap_or_default()
            }
        };
    }
    text.extend_from_slice(rest);
    is_broken.then(|| String::from_utf8_lossy(&text).into_owned())
}

/// In bytes: the work that any path is worth, about as much as a thousand readings of an ordinary one take.
const MAX_WORK: usize = 128 << 10;

/// In bytes: what readings of one path may take of the memory of a connection.
const MAX_KEPT: usize = 32 << 10;

/// In bytes: what a short one counts as, so that there are not too many for the routes to be asked about.
const MIN_KEPT: usize = 512;
