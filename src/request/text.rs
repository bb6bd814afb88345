//! One spelling for names that people type: NFKC, folded case, trimmed.

use std::borrow::Cow;

use caseless::Caseless;
use unicode_normalization::UnicodeNormalization;

/// `  Ａlice ` and `alice` are one user.
///
/// Invisible characters (zero-width and control characters, and the replacement character of invalid bytes) are
/// removed, as many applications and databases do. Of a text longer than any name only the beginning counts.
/// Normalising a normalised text changes nothing.
pub fn normalise(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_LENGTH && text.bytes().all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase()) {
        return Cow::Borrowed(text);
    }
    let text = text.trim_matches(is_idle);
    if text.len() <= MAX_LENGTH && text.is_ascii() && !text.bytes().any(|byte| is_ignored(byte.into())) {
        return if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Cow::Owned(text.to_ascii_lowercase())
        } else {
            Cow::Borrowed(text)
        };
    }
    let mut text = once(beginning(text));
    // Case folding may leave characters to compose, and composing may leave characters to fold.
    for _ in 0..MAX_ROUNDS {
        let again = once(&text);
        if again == text {
            break;
        }
        text = again;
    }
    Cow::Owned(text)
}

/// `bob` and `Bob@example.com` are one user: the name, or the part of an address before the first `@`, without quotes.
/// A text that begins with `@` is not an address.
pub fn local_part(text: &str) -> Cow<'_, str> {
    match normalise(text) {
        Cow::Borrowed(name) => Cow::Borrowed(before_at(name)),
        Cow::Owned(name) => Cow::Owned(before_at(&name).to_owned()),
    }
}

/// The part of an address before the first `@`, without quotes; a text that begins with `@` whole.
pub(crate) fn before_at(name: &str) -> &str {
    let local = name.split('@').next().unwrap_or_default();
    let local = local.trim_matches(|char| is_idle(char) || char == '"');
    if local.is_empty() { name } else { local }
}

/// Whether applications trim a character at the end of a text: white space, control characters, and characters that old
/// libraries take for white space.
pub(crate) fn is_blank(char: char) -> bool {
    char.is_whitespace() || char.is_control() || matches!(char, '\u{180e}' | '\u{200b}' | '\u{feff}')
}

fn once(text: &str) -> String {
    let folded: String = text.nfkc().filter(|char| !is_ignored(*char)).default_case_fold().nfkc().collect();
    let trimmed = folded.trim_matches(is_idle);
    beginning(trimmed).trim_end_matches(is_idle).to_owned()
}

fn beginning(text: &str) -> &str {
    let end = (0..=text.len().min(MAX_LENGTH)).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

fn is_idle(char: char) -> bool {
    is_blank(char) || is_ignored(char)
}

/// The default ignorable code points of Unicode, control characters that are not white space, and U+FFFD.
pub(crate) fn is_ignored(char: char) -> bool {
    matches!(
        char,
        '\0'..='\u{8}' | '\u{e}'..='\u{1f}' | '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}'
            | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{fffd}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    )
}

/// In bytes: longer than any name, and so short that normalising it is no target for an attack.
pub const MAX_LENGTH: usize = 4096;

/// Every character and every text that was tried is stable after two.
const MAX_ROUNDS: usize = 4;

#[cfg(test)]
mod tests;
