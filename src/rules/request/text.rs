//! One spelling for names that people type: NFKC, folded case, trimmed.

use std::borrow::Cow;

use caseless::Caseless;
use smallvec::{SmallVec, smallvec};
use unicode_normalization::UnicodeNormalization;

/// In bytes: longer than any name, and so short that normalising it is no target for an attack.
pub const MAX_LENGTH: usize = 4096;

/// Every character and every text that was tried is stable after two.
const MAX_ROUNDS: usize = 4;

/// `  Ａlice ` and `alice` are one user.
///
/// Invisible characters (zero-width and control characters, and the replacement character of invalid bytes) are
/// removed, as many applications and databases do. If a text is longer than any name, only its beginning counts.
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

// Readings of a value with a NUL: many applications end the value there, and others remove the NUL.

/// The readings of a value: the text before its first NUL and, if that differs, the text without its NULs. Nearly all
/// values have no NUL and one reading.
pub fn readings(value: Cow<'_, str>) -> SmallVec<[Cow<'_, str>; 2]> {
    let Some(end) = memchr::memchr(0, value.as_bytes()) else { return smallvec![value] };
    let without = value.replace('\0', "");
    let before = match value {
        Cow::Borrowed(value) => Cow::Borrowed(&value[..end]),
        Cow::Owned(mut value) => {
            value.truncate(end);
            Cow::Owned(value)
        }
    };
    if before == without { smallvec![before] } else { smallvec![before, Cow::Owned(without)] }
}

/// The text before the first NUL.
pub fn before(value: &str) -> &str {
    memchr::memchr(0, value.as_bytes()).map_or(value, |end| &value[..end])
}

// Compares names of fields as lenient applications do: a name matches when some framework reads it as the wanted name.

/// Whether an application that reads the field `asked` may read it from a field sent as `sent`.
///
/// Case does not count (ASP.NET), nor do blanks around the name, nor the text after a NUL (PHP). `.`, space and `[` are
/// `_` (PHP), so `user[name]`, `user.name` and `user_name` are one name. A leading `[` or `!` is skipped (qs, Spring).
/// Brackets after the name select one of its elements (`name[]`, `name[0]`).
pub(crate) fn is_read_as(sent: &str, asked: &str) -> bool {
    if begins_otherwise(sent.as_bytes(), asked.as_bytes()) {
        return false;
    }
    if is_plain(sent.as_bytes()) && is_plain(asked.as_bytes()) {
        return sent.eq_ignore_ascii_case(asked);
    }
    reads_letters(sent, asked)
}

/// Compares two names letter by letter, as any application may read them.
fn reads_letters(sent: &str, asked: &str) -> bool {
    let (sent, asked) = (folded(sent), folded(asked));
    let mut sent = letters(bare(&sent));
    for letter in letters(bare(&asked).trim_end_matches("[]")) {
        if sent.next().map(flat) != Some(flat(letter)) {
            return false;
        }
    }
    matches!(sent.next(), None | Some('['))
}

/// Whether the first difference of two names is one of letters, behind letters alone, so that neither is read as the other.
/// Most names differ so. The same for bytes that are not yet known to be text.
pub(crate) fn begins_otherwise(sent: &[u8], asked: &[u8]) -> bool {
    let first_difference = sent.iter().zip(asked).find(|(one, other)| one != other || !is_letter(**one));
    first_difference
        .is_some_and(|(one, other)| is_letter(*one) && is_letter(*other) && !one.eq_ignore_ascii_case(other))
}

/// Whether two names are equal without case.
pub(crate) fn is_same_but_for_case(sent: &str, asked: &str) -> bool {
    let (sent, asked) = (folded(sent), folded(asked));
    sent.eq_ignore_ascii_case(&asked)
}

/// A name without characters that some framework skips, and with `_` for characters that some framework reads as `_`,
/// so that a pattern matches every spelling of it.
pub(crate) fn flattened(name: &str) -> Cow<'_, str> {
    if is_plain(name.as_bytes()) { Cow::Borrowed(name) } else { Cow::Owned(letters(bare(name)).map(flat).collect()) }
}

/// Whether a name has only bytes that every application reads alike, but for case.
fn is_plain(name: &[u8]) -> bool {
    name.iter().all(|byte| is_letter(*byte))
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn folded(name: &str) -> Cow<'_, str> {
    if name.is_ascii() { Cow::Borrowed(name) } else { Cow::Owned(name.chars().default_case_fold().collect()) }
}

fn bare(name: &str) -> &str {
    name.trim_start_matches(is_blank)
        .split('\0')
        .next()
        .unwrap_or_default()
        .trim_matches(is_blank)
        .trim_start_matches(['[', '!'])
}

fn letters(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|char| !matches!(char, ']' | '"' | '\''))
}

fn flat(letter: char) -> char {
    match letter {
        '.' | ' ' | '[' => '_',
        letter => letter.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod nul_tests {
    use super::*;

    #[track_caller]
    fn check(value: &str, expected: &[&str]) {
        assert_eq!(readings(Cow::Borrowed(value)).as_slice(), expected, "{value:?}");
        assert_eq!(readings(Cow::Owned(value.to_owned())).as_slice(), expected, "{value:?}");
        assert_eq!(before(value), expected[0], "{value:?}");
    }

    #[test]
    fn a_value_ends_at_a_nul_or_is_read_without_it() {
        check("alice", &["alice"]);
        check("", &[""]);
        check("alice\0", &["alice"]);
        check("alice\0x", &["alice", "alicex"]);
        check("al\0ice\0\0x", &["al", "alicex"]);
        check("\0alice", &["", "alice"]);
        check("\0\0", &[""]);
    }

    #[test]
    fn a_value_without_a_nul_is_borrowed() {
        assert!(matches!(&readings(Cow::Borrowed("alice"))[..], [Cow::Borrowed("alice")]));
    }
}

#[cfg(test)]
mod name_tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(asked: &str, sent: &[&str]) {
        for sent in sent {
            assert!(is_read_as(sent, asked), "{sent:?} is read as {asked:?}");
        }
    }

    #[track_caller]
    fn check_not(asked: &str, sent: &[&str]) {
        for sent in sent {
            assert!(!is_read_as(sent, asked), "{sent:?} is not read as {asked:?}");
        }
    }

    #[test]
    fn a_name_is_found_in_every_spelling_that_some_application_reads() {
        check(
            "username",
            &[
                "username",
                "USERNAME",
                "UserName",
                " username",
                "\u{a0}username ",
                "\tusername\r",
                "username\0",
                "username\0x",
            ],
        );
        check(
            "username",
            &[
                "username[]",
                "username[0]",
                "username[x]",
                "username[$eq]",
                "username['a']",
                "[username]",
                "!username",
                "username[",
            ],
        );
        check("uſername", &["username", "USERNAME"]);
        check("kind", &["\u{212a}ind"]);
        check(
            "user_name",
            &[
                "user_name",
                "user.name",
                "user name",
                "user[name]",
                "user[name",
                "User[Name][]",
                "user['name']",
                "user[\"name\"]",
            ],
        );
        check("user[name]", &["user[name]", "user.name", "user_name", "USER[NAME]", "user[name][]"]);
        check("ids[]", &["ids[]", "ids", "ids[3]"]);
        check("_method", &["_method", "_METHOD"]);
    }

    #[test]
    fn other_names_are_other_names() {
        check_not(
            "username",
            &[
                "",
                "user",
                "username2",
                "usernames",
                "username_x",
                "username.x",
                "xusername",
                "user_name",
                "user[name]",
                "_username",
            ],
        );
        check_not("user", &["user_name", "user.name", "username"]);
        check_not("_method", &["method"]);
    }

    #[test]
    fn names_differ_in_more_than_case_or_are_the_same() {
        assert!(is_same_but_for_case("UserName", "username"));
        assert!(is_same_but_for_case("ÄRGER", "ärger"));
        assert!(!is_same_but_for_case("user.name", "user_name"));
    }

    proptest! {
        #[test]
        fn a_name_is_read_as_itself_and_any_two_are_compared(one in "[a-zA-Z0-9_.\\[\\]-]{1,10}", other in "[ -~\u{e9}]{0,10}") {
            prop_assert!(is_read_as(&one, &one));
            prop_assert!(!begins_otherwise(one.as_bytes(), other.as_bytes()) || !reads_letters(&one, &other));
            prop_assert_eq!(is_same_but_for_case(&one, &other), is_same_but_for_case(&other, &one));
            is_read_as(&other, &one);
        }
    }
}

#[cfg(test)]
mod tests;
