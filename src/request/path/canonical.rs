//! The canonical form of a path, the one that rules compare.

use std::borrow::Cow;

use caseless::Caseless;
use smallvec::SmallVec;

use super::classify::PathForm;
use super::classify::classify;
use super::decode::decode;
use crate::request::text::is_blank;

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
