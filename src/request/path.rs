//! One path for every spelling of it.

use std::borrow::Cow;

use caseless::Caseless;
use smallvec::SmallVec;

use super::percent;
use super::percent::Escapes;
use super::text::is_blank;

use self::readings::PathReadings;

/// A path with its spelling taken away: decoded, resolved, trimmed. Starts with `/`, ends in one only when it
/// is `/` itself.
///
/// Escapes are decoded until nothing changes, three times at most; a path that would go on changing is compared as it is
/// then. `\` is `/`, repeated slashes are one, `;params` go, `.` and `..` are resolved and never leave the root, what
/// follows a NUL goes, and blanks and dots at the end go with the slashes there. The empty path and `*` are `/`. The path
/// that is forwarded is never this one.
///
/// Applications disagree about which of these come before dots are resolved and which after, or never: to one of them
/// `/x\y/../login` is `/login`. Others run the script that a path names, whatever follows it. So a path may have further
/// readings.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CanonicalPath<'r> {
    cased: Cow<'r, str>,
    /// `None` when folding case changes nothing.
    folded: Option<String>,
    readings: PathReadings,
}

impl<'r> CanonicalPath<'r> {
    pub fn new(path: &'r str) -> Self {
        match classify(path.as_bytes()) {
            PathForm::Canonical { cased, may_name_scripts } => Self {
                cased: Cow::Borrowed(path),
                folded: cased.then(|| path.to_ascii_lowercase()),
                readings: if may_name_scripts { readings::of_canonical(path) } else { PathReadings::default() },
            },
            PathForm::Other => {
                let plain = decode(path);
                let canonical = resolve(&plain);
                let readings = readings::of(path, &plain, &canonical);
                Self { readings, ..Self::resolved(canonical) }
            }
        }
    }

    fn resolved(cased: String) -> Self {
        let folded = folded(&cased);
        Self { cased: Cow::Owned(cased), folded, readings: PathReadings::default() }
    }

    /// What else an application may take the path for; hardly ever anything.
    pub fn readings(&self) -> &[CanonicalPath<'static>] {
        &self.readings.found
    }

    /// Whether it has more readings than were looked for: it may be any path.
    pub fn may_be_any(&self) -> bool {
        self.readings.is_cut_short
    }

    /// With letters as they were sent.
    pub fn cased(&self) -> &str {
        &self.cased
    }

    /// With letters compared without case.
    pub fn folded(&self) -> &str {
        self.folded.as_deref().unwrap_or(&self.cased)
    }
}

/// How much there is to do to a path.
enum PathForm {
    /// Nothing, but for capital letters, all of them ASCII, and for scripts.
    Canonical {
        cased: bool,
        may_name_scripts: bool,
    },
    Other,
}

/// Most paths are canonical as they come; one pass over the bytes finds that out.
fn classify(path: &[u8]) -> PathForm {
    if path.first() != Some(&b'/') || (path.len() > 1 && path.last() == Some(&b'/')) {
        return PathForm::Other;
    }
    let (mut cased, mut last_slash, mut first_dot) = (false, 0, path.len());
    for (at, byte) in path.iter().enumerate() {
        match BYTE_CLASSES[usize::from(*byte)] {
            // `/(S(1))` may be a session.
            ByteClass::Slash if matches!(path.get(at + 1), Some(b'/' | b'(')) => return PathForm::Other,
            // A name that ends in a dot, or is nothing else.
            ByteClass::Dot if matches!(path.get(at + 1), None | Some(b'/')) => return PathForm::Other,
            ByteClass::Dot => first_dot = first_dot.min(at),
            ByteClass::Slash => last_slash = at,
            ByteClass::Capital => cased = true,
            ByteClass::Special => return PathForm::Other,
            ByteClass::Plain => {}
        }
    }
    // Hardly any path has a dot before its last name, or a last name with one that begins like an index.
    let may_name_scripts =
        first_dot < last_slash || (first_dot < path.len() && script::begins_like_index(&path[last_slash + 1..]));
    PathForm::Canonical { cased, may_name_scripts }
}

/// What a byte of a path may mean.
#[derive(Clone, Copy)]
enum ByteClass {
    Plain,
    Capital,
    Slash,
    Dot,
    Special,
}

const BYTE_CLASSES: [ByteClass; 256] = {
    let mut classes = [ByteClass::Special; 256];
    let mut byte = 0x21_u8;
    while byte < 0x7f {
        classes[byte as usize] = match byte {
            b'/' => ByteClass::Slash,
            b'.' => ByteClass::Dot,
            // `$` as in `::$DATA`, which names a file in Windows once more.
            b'%' | b'\\' | b';' | b'$' => ByteClass::Special,
            b'A'..=b'Z' => ByteClass::Capital,
            _ => ByteClass::Plain,
        };
        byte += 1;
    }
    classes
};

fn decode(path: &str) -> Cow<'_, str> {
    let mut path = Cow::Borrowed(path);
    for _ in 0..MAX_DECODE_ROUNDS {
        let Some(plain) = decode_once(&path) else { break };
        path = Cow::Owned(plain);
    }
    path
}

fn decode_once(path: &str) -> Option<String> {
    let plain = percent::decode(path.as_bytes(), Escapes { plus: false, code_units: true })?;
    Some(percent::text(Cow::Owned(plain)).into_owned())
}

fn resolve(path: &str) -> String {
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
    // What blanks hid at the end may itself be blank, or dots.
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

fn folded(path: &str) -> Option<String> {
    if path.is_ascii() {
        return path.bytes().any(|byte| byte.is_ascii_uppercase()).then(|| path.to_ascii_lowercase());
    }
    let folded: String = path.chars().default_case_fold().collect();
    (folded != path).then_some(folded)
}

/// Three rounds: more nesting than that is an attack, not an encoding.
const MAX_DECODE_ROUNDS: usize = 3;

mod readings;
pub(crate) mod script;
mod windows;

#[cfg(test)]
mod tests;
