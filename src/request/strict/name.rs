//! Which names are surely another field's.

use std::borrow::Cow;

use caseless::Caseless;
use unicode_normalization::UnicodeNormalization;

use crate::request::name::is_read_as;

/// How a name that was sent stands to one that is asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum NameMatch {
    Exact,
    /// The same but for the case of its letters, which some applications ignore.
    OtherCase,
    /// Surely another field.
    Other,
    /// Some framework may read it as the asked field.
    Doubtful,
}

/// Whether every application reads a name alike, but for case.
pub(super) fn is_plain(name: &[u8]) -> bool {
    name.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Compares two names of fields in a form, a query or a multipart body.
///
/// Frameworks take names apart at brackets, dots, blanks and other marks, drop those, or drop what stands around them. So a
/// name with such marks is another field's only if its letters are not those of the asked name, and none of its pieces
/// is the asked name.
pub(super) fn compare(sent: &str, asked: &str) -> NameMatch {
    if sent == asked {
        return NameMatch::Exact;
    }
    let is_sent_plain = is_plain(sent.as_bytes());
    if is_sent_plain && is_plain(asked.as_bytes()) {
        return if sent.eq_ignore_ascii_case(asked) { NameMatch::OtherCase } else { NameMatch::Other };
    }
    if is_sent_plain && sent.eq_ignore_ascii_case(asked) {
        return NameMatch::OtherCase;
    }
    let has_odd_letter = sent.chars().any(|char| char.is_control() || matches!(char, '%' | '\u{fffd}'));
    if has_odd_letter || may_be(sent, asked) { NameMatch::Doubtful } else { NameMatch::Other }
}

/// Whether some framework may read a name as the asked one.
pub(super) fn may_be(sent: &str, asked: &str) -> bool {
    let has_marks = !is_plain(sent.as_bytes());
    is_read_as(sent, asked) || has_marks && (letters(sent).eq(letters(asked)) || has_piece(sent, asked))
}

/// The letters and digits of a name, without case.
fn letters(name: &str) -> impl Iterator<Item = char> {
    folded(name).chars().filter(|char| char.is_alphanumeric()).collect::<Vec<_>>().into_iter()
}

/// Whether the pieces of `sent` between its marks hold those of `asked`, one behind the other.
fn has_piece(sent: &str, asked: &str) -> bool {
    let (sent, asked) = (folded(sent), folded(asked));
    let (sent, asked): (Vec<_>, Vec<_>) = (pieces(&sent).collect(), pieces(&asked).collect());
    !asked.is_empty() && sent.windows(asked.len()).any(|window| window == asked)
}

fn pieces(name: &str) -> impl Iterator<Item = &str> {
    let is_mark = |char: char| !(char.is_alphanumeric() || matches!(char, '_' | '-'));
    name.split(is_mark).filter(|piece| !piece.is_empty())
}

fn folded(name: &str) -> Cow<'_, str> {
    if name.is_ascii() {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Owned(name.nfkc().default_case_fold().collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(asked: &str, sent: &[&str], expected: NameMatch) {
        for sent in sent {
            assert_eq!(compare(sent, asked), expected, "{sent:?} for {asked:?}");
        }
    }

    #[test]
    fn a_name_that_frameworks_rewrite_is_doubtful() {
        check(
            "username",
            &[
                "][username",
                "username[",
                "username]",
                "username[]",
                "username[0]",
                "[username]",
                "[username]x",
                "user name",
                "user.name",
                "user[name]",
                "us[er].name",
                " username",
                "username ",
                "user\u{a0}name",
                "user\u{200b}name",
                "username\0x",
                "model.username",
                "login[username]",
                "login[username][]",
                "username:string",
                "!username",
                "\u{ff55}sername",
                "u%73ername",
            ],
            NameMatch::Doubtful,
        );
        check("user_name", &["user.name", "user name", "user[name", "x[user_name]"], NameMatch::Doubtful);
        check("user[login]", &["user.login", "user_login", "user[login][]", "USER[login]"], NameMatch::Doubtful);
        check("_method", &["_method[]", "x[_method]", ".method", "[_method"], NameMatch::Doubtful);
    }

    #[test]
    fn names_of_ordinary_forms_are_other_fields() {
        check(
            "username",
            &["user[email]", "user", "user_name", "user-name", "password", "g-recaptcha-response", "a.b", "Vor Name"],
            NameMatch::Other,
        );
        check(
            "username",
            &["j_idt5:name", "ctl00$Main$Password", "имя", "__RequestVerificationToken"],
            NameMatch::Other,
        );
        check("user[login]", &["user[password]", "user[remember_me]", "authenticity_token", "login"], NameMatch::Other);
        check("ctl00$Main$UserName", &["ctl00$Main$Password", "ctl00$Main$Login"], NameMatch::Other);
        check("_method", &["method", "payment_method", "shipping[method]"], NameMatch::Other);
    }

    #[test]
    fn a_name_is_itself_and_case_is_known() {
        check("username", &["username"], NameMatch::Exact);
        check("user[login]", &["user[login]"], NameMatch::Exact);
        check("username", &["UserName", "USERNAME"], NameMatch::OtherCase);
    }

    proptest! {
        #[test]
        fn what_a_lenient_reader_takes_for_the_field_is_never_another(
            sent in "(u|U|ser|user|name|[.\\[\\] _-]|\u{a0}){0,6}",
            asked in prop::sample::select(vec!["username", "user_name", "user[name]", "user.name"]),
        ) {
            prop_assert!(!is_read_as(&sent, asked) || compare(&sent, asked) != NameMatch::Other, "{sent:?}");
        }
    }
}
