//! The same path to applications that resolve dots sooner or later than others, or know other separators.

use super::CanonicalPath;
use super::MAX_DECODE_ROUNDS;
use super::decode;
use super::decode_once;
use super::resolve;
use crate::request::text::is_blank;

/// What an application takes for the structure of a path when it resolves dots.
#[derive(Clone, Copy)]
struct Grammar {
    /// `\` separates segments.
    backslash: bool,
    /// What follows a `;` is no part of a segment.
    params: bool,
    /// Several slashes are one.
    merging: bool,
}

/// The canonical forms that a path has to some applications, beside the one that it has to most.
pub(super) fn of(path: &str) -> Vec<CanonicalPath<'static>> {
    let plain = decode(path);
    if !is_ambiguous(path, &plain) {
        return Vec::new();
    }
    let usual = resolve(&plain);
    let mut readings: Vec<CanonicalPath<'static>> = Vec::new();
    let mut text = path.to_owned();
    for _ in 0..=MAX_DECODE_ROUNDS {
        for number in 0..8_u8 {
            let grammar = Grammar { backslash: number & 1 > 0, params: number & 2 > 0, merging: number & 4 > 0 };
            let reading = read(&text, grammar);
            if reading != usual && readings.iter().all(|known| known.cased() != reading) {
                readings.push(CanonicalPath::resolved(reading));
            }
        }
        match decode_once(&text) {
            Some(plain) => text = plain,
            None => break,
        }
    }
    readings
}

/// Whether applications may see different segments. A name with a blank or an accent is none that they differ about.
fn is_ambiguous(path: &str, plain: &str) -> bool {
    let slashes = |text: &str| text.bytes().filter(|byte| *byte == b'/').count();
    slashes(path) != slashes(plain)
        || plain.contains('\\')
        || plain.contains("/;")
        || (plain.contains("/..") && (plain.contains(';') || plain.contains("//") || path.contains('%')))
}

/// Resolves the dots that are dots in this grammar, and only then takes the rest of the spelling away.
fn read(path: &str, grammar: Grammar) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split(|c| c == '/' || (grammar.backslash && c == '\\')).skip(1) {
        let name = if grammar.params { segment.split(';').next().unwrap_or_default() } else { segment };
        match name {
            "" if grammar.merging => {}
            "." => {}
            ".." => _ = segments.pop(),
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
    reading.truncate(reading.trim_end_matches(|c| c == '/' || is_blank(c)).len());
    if reading.is_empty() { "/".to_owned() } else { reading }
}
