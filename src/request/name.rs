//! Compares names of fields as lenient applications do: a name matches when some framework reads it as the wanted name.

use std::borrow::Cow;

use caseless::Caseless;

use super::text::is_blank;

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

/// The same of any two names.
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

/// A name without what some framework skips, and with `_` for what some framework reads as `_`, so that a pattern matches
/// it however it is spelt.
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
mod tests {
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
