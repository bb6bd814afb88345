//! Other readings of a path: applications decode and resolve in different orders, know different separators, and drop
//! different parts.

use std::borrow::Cow;

use super::script;
use crate::rules::request::path::{CanonicalPath, MAX_DECODE_ROUNDS, decode, decode_once};
use crate::rules::request::text::is_blank;

/// In bytes: about as much work as a thousand readings of an ordinary path.
const MAX_WORK: usize = 128 << 10;

/// In bytes: the memory of a connection that the readings of one path may take.
const MAX_KEPT: usize = 32 << 10;

/// In bytes: a shorter reading counts as this, which bounds how many readings the routes are compared with.
const MIN_KEPT: usize = 512;

/// The other paths that applications may read a path as, beside its canonical form.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct PathReadings {
    pub(super) found: Vec<CanonicalPath<'static>>,
    /// The search stopped at its bound: no honest path has so many readings.
    pub(super) is_cut_short: bool,
}

/// The readings of a path that was sent in canonical form.
pub(super) fn of_canonical(path: &str) -> PathReadings {
    let mut search = ReadingSearch::beside(path);
    search.scripts_in(path);
    search.readings
}

/// The readings of a path in any other spelling. `plain` is the decoded path.
pub(super) fn of(path: &str, plain: &str, canonical: &str) -> PathReadings {
    let mut search = ReadingSearch::beside(canonical);
    search.add_variants(canonical);
    if let Some(text) = without_broken_escapes(path) {
        search.in_every_grammar(&decode_once(&text).unwrap_or(text));
    }
    let (is_ambiguous, has_authority) = (is_ambiguous(path, plain), begins(plain));
    if is_ambiguous || has_authority {
        let mut text = Cow::Borrowed(path);
        for _ in 0..=MAX_DECODE_ROUNDS {
            if is_ambiguous {
                search.in_every_grammar(&text);
            }
            if has_authority {
                search.behind_authorities(&text);
            }
            match decode_once(&text) {
                Some(plain) => text = Cow::Owned(plain),
                None => break,
            }
        }
    }
    search.readings
}

/// Whether applications may read different paths. They agree about segments with blanks or accents.
fn is_ambiguous(path: &str, plain: &str) -> bool {
    let slashes = |text: &str| text.bytes().filter(|byte| *byte == b'/').count();
    let ends_with_dot =
        |(at, _): (usize, char)| matches!(plain.as_bytes().get(at + 1), None | Some(b'/' | b';' | b' '));
    slashes(path) != slashes(plain)
        || plain.contains(['\\', '\0', '?', '#'])
        || plain.contains("/;")
        || plain.char_indices().filter(|(_, char)| *char == '.').any(ends_with_dot)
}

/// How an application splits and resolves a path.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "applications differ in each of these independently")]
struct Grammar {
    /// `\` separates segments.
    backslash: bool,
    /// The text after a `;` is not part of the segment.
    params: bool,
    /// Several slashes are one.
    merging: bool,
    /// `.` and `..` are ordinary names.
    literal: bool,
}

impl Grammar {
    /// Every grammar that reads this text differently.
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

    /// Resolves dots by this grammar, and decodes only then.
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
                // In this application the slash is part of the segment, so no pattern may take it for a separator.
                reading.push_str(&name.replace('/', "%2f"));
            }
        }
        trimmed(&reading).to_owned()
    }
}

/// The readings found so far, and the work and memory left for more: clients choose the path, so the search is bounded.
struct ReadingSearch<'c> {
    canonical: &'c str,
    readings: PathReadings,
    /// In bytes that may still be read.
    work: usize,
    /// In bytes that may still be kept.
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
            // A file name ends at a NUL. A path that is parsed as a target again ends at its query.
            for ends in [&['\0'][..], &['?', '#'][..]] {
                if let Some(end) = reading.find(ends) {
                    self.found(trimmed(&reading[..end]));
                }
            }
            self.found(&reading);
        }
    }

    /// For applications that parse the path as a reference with an authority, and what stands behind that as another.
    fn behind_authorities(&mut self, text: &str) {
        for behind in paths_behind(text) {
            if !self.spend(text.len()) {
                return;
            }
            self.in_every_grammar(&behind);
            self.behind_authorities(&behind);
        }
    }

    fn found(&mut self, reading: &str) {
        if self.add(reading) {
            self.add_variants(reading);
        }
    }

    /// Adds the paths that servers with scripts and servers on Windows read in a reading.
    fn add_variants(&mut self, reading: &str) {
        self.scripts_in(reading);
        let session_apart = script::without_session(reading);
        let in_windows = script::named(session_apart.as_deref().unwrap_or(reading));
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

    /// Adds a reading. Returns whether it is new.
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

/// A path as uWSGI decodes it: an incomplete escape is removed, and an escape with other letters than digits is a NUL.
/// `None` when every escape is valid.
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

// A path that begins with two slashes: an application that parses it as a reference to a URL takes what follows for a host
// and only the rest for the path (RFC 3986, section 4.2). PHP's `parse_url` reads `//x/login` so.

const SLASHES: [char; 2] = ['/', '\\'];

/// Whether the path would have an authority.
pub(super) fn begins(path: &str) -> bool {
    path.len() - path.trim_start_matches(SLASHES).len() >= 2
}

/// The path after the authority, as different parsers find it. Parsers of the URL Standard, like `new URL` in
/// JavaScript, take `\` for a slash too. Empty where there is no authority.
pub(super) fn paths_behind(path: &str) -> Vec<String> {
    if !begins(path) {
        return Vec::new();
    }
    // The URL Standard skips further slashes.
    let authority = path.trim_start_matches(SLASHES);
    let mut paths: Vec<String> = [&['/', '?', '#'][..], &['/', '\\', '?', '#']]
        .into_iter()
        .map(|ends| match authority.find(ends) {
            Some(end) if authority[end..].starts_with(SLASHES) => format!("/{}", &authority[end + 1..]),
            _ => "/".to_owned(),
        })
        .collect();
    paths.dedup();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_begins_behind_the_host() {
        for (path, expected) in [
            ("//x/login", &["/login"][..]),
            ("//u@x:80/login/", &["/login/"]),
            ("//[::1]/login", &["/login"]),
            ("/\\x/login", &["/login"]),
            ("\\\\///x/login", &["/login"]),
            ("//x\\y/login", &["/login", "/y/login"]),
            ("//x//y/login", &["//y/login"]),
            ("//x", &["/"]),
            ("//x?/login", &["/"]),
            ("//", &["/"]),
            ("/x//login", &[]),
            ("/", &[]),
            ("", &[]),
        ] {
            assert_eq!(paths_behind(path), expected, "{path}");
        }
    }
}
