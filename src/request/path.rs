//! One path for every spelling of it.

use std::borrow::Cow;

use caseless::Caseless;
use smallvec::SmallVec;

use super::percent;
use super::percent::Escapes;
use super::text::is_blank;

/// A path with its spelling taken away: decoded, resolved, trimmed. Starts with `/`, ends in one only when it
/// is `/` itself.
///
/// Escapes are decoded until nothing changes, three times at most; a path that would go on changing is compared as it is
/// then. `\` is `/`, repeated slashes are one, `;params` go, `.` and `..` are resolved and never leave the root, and
/// whatever is blank at the end goes with the slashes there. The empty path and `*` are `/`. The path that is
/// forwarded is never this one.
///
/// Applications disagree about which of these come before dots are resolved and which after, or never: to one of them
/// `/x\y/../login` is `/login`. So a path may have further readings.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CanonicalPath<'r> {
    cased: Cow<'r, str>,
    /// `None` when folding case changes nothing.
    folded: Option<String>,
    readings: Vec<CanonicalPath<'static>>,
}

impl<'r> CanonicalPath<'r> {
    pub fn new(path: &'r str) -> Self {
        match survey(path.as_bytes()) {
            Spelling::Canonical => Self { cased: Cow::Borrowed(path), folded: None, readings: Vec::new() },
            Spelling::Cased => {
                Self { cased: Cow::Borrowed(path), folded: Some(path.to_ascii_lowercase()), readings: Vec::new() }
            }
            Spelling::Other => {
                let readings = readings::of(path);
                Self { readings, ..Self::resolved(resolve(&decode(path))) }
            }
        }
    }

    fn resolved(cased: String) -> Self {
        let folded = folded(&cased);
        Self { cased: Cow::Owned(cased), folded, readings: Vec::new() }
    }

    /// What else an application may take the path for; hardly ever anything.
    pub fn readings(&self) -> &[CanonicalPath<'static>] {
        &self.readings
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
enum Spelling {
    Canonical,
    /// Canonical but for capital letters, all of them ASCII.
    Cased,
    Other,
}

/// Most paths are canonical as they come; one pass over the bytes finds that out.
fn survey(path: &[u8]) -> Spelling {
    if path.first() != Some(&b'/') || (path.len() > 1 && path.last() == Some(&b'/')) {
        return Spelling::Other;
    }
    let mut cased = false;
    for (at, byte) in path.iter().enumerate() {
        match LETTERS[usize::from(*byte)] {
            Letter::Capital => cased = true,
            Letter::Slash if !goes_on_with_a_name(&path[at + 1..]) => return Spelling::Other,
            Letter::Odd => return Spelling::Other,
            Letter::Plain | Letter::Slash => {}
        }
    }
    if cased { Spelling::Cased } else { Spelling::Canonical }
}

/// Whether what follows a slash is a segment with a name, or the end: not another slash, and not one or two dots.
fn goes_on_with_a_name(rest: &[u8]) -> bool {
    !matches!(rest, [b'/', ..] | [b'.'] | [b'.', b'/', ..] | [b'.', b'.'] | [b'.', b'.', b'/', ..])
}

/// What a byte of a path may mean.
#[derive(Clone, Copy)]
enum Letter {
    Plain,
    Capital,
    Slash,
    Odd,
}

const LETTERS: [Letter; 256] = {
    let mut letters = [Letter::Odd; 256];
    let mut byte = 0x21_u8;
    while byte < 0x7f {
        letters[byte as usize] = match byte {
            b'/' => Letter::Slash,
            b'%' | b'\\' | b';' => Letter::Odd,
            b'A'..=b'Z' => Letter::Capital,
            _ => Letter::Plain,
        };
        byte += 1;
    }
    letters
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
    // What blanks hid at the end may itself be blank, or dots.
    while let Some(last) = segments.pop() {
        match last.trim_end_matches(is_blank) {
            "" | "." => {}
            ".." => _ = segments.pop(),
            name => {
                segments.push(name);
                break;
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

#[cfg(test)]
mod tests;
