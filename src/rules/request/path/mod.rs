//! The path of a request: one canonical form for all its spellings, and the other paths that applications may read it
//! as.

mod readings;
pub(crate) mod script;

use std::borrow::Cow;

use caseless::Caseless;
use smallvec::SmallVec;

use crate::rules::request::path::readings::PathReadings;
use crate::rules::request::text::is_blank;
use crate::rules::request::urlencoded;
use crate::rules::request::urlencoded::Escapes;

const CAPITAL: ByteClass = 1;

const SLASH: ByteClass = 2;

const DOT: ByteClass = 4;

const BRACKET: ByteClass = 8;

/// It may be part of another spelling.
const SPECIAL: ByteClass = 16;

const NEXT: u32 = 8;

const BYTE_CLASSES: [ByteClass; 256] = {
    let mut classes = [SPECIAL; 256];
    let mut byte = 0x21_u8;
    while byte < 0x7f {
        classes[byte as usize] = match byte {
            // `/(S(1))` may be a session of ASP.NET.
            b'/' => SLASH | (SLASH | BRACKET) << NEXT,
            // A segment that ends in a dot, or is only dots.
            b'.' => DOT | SLASH << NEXT,
            b'(' => BRACKET,
            // `$` as in `::$DATA`, which in Windows is another name of the same file.
            b'%' | b'\\' | b';' | b'$' => SPECIAL,
            b'A'..=b'Z' => CAPITAL,
            _ => 0,
        };
        byte += 1;
    }
    classes
};

/// How much there is to do to a path.
pub(super) enum PathForm {
    /// It is ASCII, and canonical but for capital letters.
    Canonical {
        has_capitals: bool,
        may_name_scripts: bool,
    },
    Other,
}

pub(super) fn classify(path: &[u8]) -> PathForm {
    if path.first() != Some(&b'/') || (path.len() > 1 && path.last() == Some(&b'/')) {
        return PathForm::Other;
    }
    let (mut found, mut pairs, mut before) = (0, 0, 0);
    for byte in path {
        let class = BYTE_CLASSES[usize::from(*byte)];
        found |= class;
        pairs |= class & (before >> NEXT);
        before = class;
    }
    if found & SPECIAL != 0 || pairs != 0 || before & DOT != 0 {
        return PathForm::Other;
    }
    let has_capitals = found & CAPITAL != 0;
    PathForm::Canonical { has_capitals, may_name_scripts: found & DOT != 0 && may_name_scripts(path) }
}

/// Hardly any path has a dot before its last segment, or a last segment that has a dot and begins like an index.
fn may_name_scripts(path: &[u8]) -> bool {
    let last_slash = memchr::memrchr(b'/', path).unwrap_or_default();
    let first_dot = memchr::memchr(b'.', path).unwrap_or(path.len());
    first_dot < last_slash || (first_dot < path.len() && script::begins_like_index(&path[last_slash + 1..]))
}

/// The possible meaning of a byte of a path. Above [`NEXT`] are the classes that make a path special in the byte after
/// it.
type ByteClass = u16;

// Percent-decoding of paths, repeated for paths that were encoded more than once.

/// Three rounds: more nesting than that is an attack, not an encoding.
pub(super) const MAX_DECODE_ROUNDS: usize = 3;

/// Decodes a path until nothing changes, or for as many rounds as are allowed.
pub(super) fn decode(path: &str) -> Cow<'_, str> {
    let mut path = Cow::Borrowed(path);
    for _ in 0..MAX_DECODE_ROUNDS {
        let Some(plain) = decode_once(&path) else { break };
        path = Cow::Owned(plain);
    }
    path
}

/// Decodes one layer of escapes; `None` when there is none.
pub(super) fn decode_once(path: &str) -> Option<String> {
    let plain = urlencoded::decode(path.as_bytes(), Escapes { plus: false, code_units: true })?;
    Some(urlencoded::text(Cow::Owned(plain)).into_owned())
}

/// The text after an escaped question mark, for each layer of escapes that has one.
pub(in crate::rules::request) fn queries_within(path: &str) -> Vec<String> {
    let mut queries = Vec::new();
    let mut text = Cow::Borrowed(path);
    for _ in 0..MAX_DECODE_ROUNDS {
        let Some(plain) = decode_once(&text) else { break };
        if let Some((_, query)) = plain.split_once('?')
            && queries.last().is_none_or(|last| last != query)
        {
            queries.push(query.to_owned());
        }
        text = Cow::Owned(plain);
    }
    queries
}

// The canonical form of a path, the one that rules compare.

/// A path that is decoded, resolved and trimmed, so that all its spellings are equal. It starts with `/`, and ends in
/// one only when it is `/` itself.
///
/// Escapes are decoded until nothing changes, three times at most; a path that would go on changing is compared as it
/// is after three rounds. `\` becomes `/`, repeated slashes become one, `;params` are removed, `.` and `..` are
/// resolved and never leave the root. What follows a NUL is removed, and so are slashes, blanks and dots at the end.
/// The empty path and `*` are `/`. The gateway never forwards this path; it forwards the one that was sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CanonicalPath<'r> {
    pub(super) cased: Cow<'r, str>,
    /// `None` when folding case changes nothing.
    pub(super) folded: Option<String>,
}

impl<'r> CanonicalPath<'r> {
    pub fn new(path: &'r str) -> Self {
        match classify(path.as_bytes()) {
            PathForm::Canonical { has_capitals, .. } => Self::as_sent(path, has_capitals),
            PathForm::Other => Self::resolved(resolve(&decode(path))),
        }
    }

    /// A path that is canonical as it was sent, but for capital letters.
    pub(super) fn as_sent(path: &'r str, has_capitals: bool) -> Self {
        Self { cased: Cow::Borrowed(path), folded: has_capitals.then(|| path.to_ascii_lowercase()) }
    }

    /// A path that is resolved already.
    pub(super) fn resolved(cased: String) -> Self {
        let folded = folded(&cased);
        Self { cased: Cow::Owned(cased), folded }
    }

    /// With letters as they were sent.
    pub fn cased(&self) -> &str {
        &self.cased
    }

    /// With letters in folded case.
    pub fn folded(&self) -> &str {
        self.folded.as_deref().unwrap_or(&self.cased)
    }
}

/// Resolves dots, separators, parameters and blanks in a decoded path.
pub(super) fn resolve(path: &str) -> String {
    let mut segments: SmallVec<[&str; 16]> = SmallVec::new();
    if path != "*" {
        for segment in path.split(['/', '\\']) {
            match segment.split(';').next().unwrap_or_default() {
                "" | "." => {}
                ".." => _ = segments.pop(),
                name => segments.push(name),
            }
        }
    }
    if let Some((at, end)) = segments.iter().enumerate().find_map(|(at, name)| Some((at, name.find('\0')?))) {
        segments.truncate(at + 1);
        segments[at] = &segments[at][..end];
    }
    // Without its blanks the last segment may be empty, or dots.
    while let Some(last) = segments.pop() {
        match last.trim_end_matches(is_blank) {
            "" | "." => {}
            ".." => _ = segments.pop(),
            name => {
                let name = name.trim_end_matches(|c| c == '.' || is_blank(c));
                if !name.is_empty() {
                    segments.push(name);
                    break;
                }
            }
        }
    }
    let mut canonical = String::with_capacity(path.len() + 1);
    for segment in &segments {
        canonical.push('/');
        canonical.push_str(segment);
    }
    if canonical.is_empty() {
        canonical.push('/');
    }
    canonical
}

pub(super) fn folded(path: &str) -> Option<String> {
    if path.is_ascii() {
        return path.bytes().any(|byte| byte.is_ascii_uppercase()).then(|| path.to_ascii_lowercase());
    }
    let folded: String = path.chars().default_case_fold().collect();
    (folded != path).then_some(folded)
}

// The path of a request in its canonical form and in its other readings.

/// The path of a request.
///
/// Applications disagree whether escapes, separators and parameters are handled before dots are resolved, after that,
/// or never: to one of them `/x\y/../login` is `/login`. Others run the script that a path names, and ignore the rest
/// of the path. So a path may have other readings beside its canonical form.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RequestPath<'r> {
    canonical: CanonicalPath<'r>,
    readings: PathReadings,
}

impl<'r> RequestPath<'r> {
    pub fn new(path: &'r str) -> Self {
        match classify(path.as_bytes()) {
            PathForm::Canonical { has_capitals, may_name_scripts } => Self {
                canonical: CanonicalPath::as_sent(path, has_capitals),
                readings: if may_name_scripts { readings::of_canonical(path) } else { PathReadings::default() },
            },
            PathForm::Other => {
                let plain = decode(path);
                let canonical = resolve(&plain);
                let readings = readings::of(path, &plain, &canonical);
                Self { canonical: CanonicalPath::resolved(canonical), readings }
            }
        }
    }

    pub fn canonical(&self) -> &CanonicalPath<'r> {
        &self.canonical
    }

    /// The other paths that an application may read it as; hardly any path has one.
    pub fn readings(&self) -> &[CanonicalPath<'static>] {
        &self.readings.found
    }

    /// Whether the search for readings stopped at its bound: the path may then be read as any path.
    pub fn may_be_any(&self) -> bool {
        self.readings.is_cut_short
    }
}

#[cfg(test)]
mod tests;
