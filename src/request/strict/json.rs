//! JSON as clients write it.

use serde::de::IgnoredAny;

use super::Presence;
use super::name::NameMatch;
use super::name::compare;
use crate::request::NotUnderstood;
use crate::request::json::JsonLeaf;
use crate::request::json::JsonPiece;
use crate::request::json::scan;
use crate::request::name::is_same_but_for_case;

/// Whether a text is JSON from its first to its last byte. A byte order mark before it is not part of it.
pub(super) fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// How often a scalar stands at a dotted path, in a text that is JSON.
pub(super) fn presence(text: &[u8], path: &str) -> Result<Presence, NotUnderstood> {
    let mut found: Option<Presence> = None;
    let mut doubt = None;
    scan(text, &mut |piece| {
        doubt = doubt.or(match piece {
            JsonPiece::Name { outside, name } => doubtful_name(outside, name, path),
            // An application may take the only element for the list, or the list for its first element.
            JsonPiece::Element { outside } => {
                let step = asked_below(path, outside).and_then(|below| below.split('.').next());
                step.filter(|step| step.parse::<usize>().is_err()).map(|_| NotUnderstood::Value)
            }
            JsonPiece::Leaf(at, leaf) if is_same_but_for_case(at, path) => match (found, leaf) {
                (Some(_), _) => Some(NotUnderstood::Repeated),
                (None, JsonLeaf::Bracket) => Some(NotUnderstood::Value),
                (None, JsonLeaf::Number(number)) if !is_exact(number) => Some(NotUnderstood::Value),
                (None, leaf) => {
                    let is_text = matches!(leaf, JsonLeaf::Text(_) | JsonLeaf::Number(_)) && at == path;
                    found = Some(if is_text { Presence::Once } else { Presence::Otherwise });
                    None
                }
            },
            JsonPiece::Leaf(..) => None,
        });
    });
    doubt.map_or(Ok(found.unwrap_or(Presence::Absent)), Err)
}

/// Whether every application reads the same number, and writes it alike.
fn is_exact(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    digits.len() <= MOST_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit()) && number != "-0"
}

/// A number of so many digits is exact as a floating-point number, as which many applications read it.
const MOST_DIGITS: usize = 15;

/// Whether some application may read a name of an object as a step of the path.
fn doubtful_name(outside: &str, name: &str, path: &str) -> Option<NotUnderstood> {
    let below = asked_below(path, outside)?;
    let step = below.split('.').next().unwrap_or_default();
    let is_other = |asked| matches!(compare(name, asked), NameMatch::Other);
    let is_step = matches!(compare(name, step), NameMatch::Exact | NameMatch::OtherCase) && !name.contains('.');
    let is_none = is_other(step) && is_other(below);
    if is_step || is_none { None } else { Some(NotUnderstood::Name) }
}

/// What of the path stands below the object or the list at `outside`.
fn asked_below<'p>(path: &'p str, outside: &str) -> Option<&'p str> {
    if outside.is_empty() {
        return Some(path);
    }
    let steps = outside.split('.').count();
    let end = path.match_indices('.').nth(steps - 1)?.0;
    is_same_but_for_case(&path[..end], outside).then(|| &path[end + 1..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::request::json;

    #[track_caller]
    fn check(path: &str, text: &str, expected: Result<Presence, NotUnderstood>) {
        assert!(is_json(text), "{text}");
        assert_eq!(presence(text.as_bytes(), path), expected, "{path} of {text}");
    }

    #[test]
    fn a_scalar_that_stands_at_the_path_once_is_understood() {
        check("user", r#"{"user": "alice", "other": ["user", {"user": "x"}]}"#, Ok(Presence::Once));
        check("user", r#"{"us\u0065r": "alice"}"#, Ok(Presence::Once));
        check("user.id", r#"{"user": {"id": 7, "name": "x"}}"#, Ok(Presence::Once));
        check("users.0.id", r#"{"users": [{"id": 7}, {"id": 8}]}"#, Ok(Presence::Once));
        check("user", r#"{"User": "alice"}"#, Ok(Presence::Otherwise));
        check("user", r#"{"user": true}"#, Ok(Presence::Otherwise));
        check("user", r#"{"user": null}"#, Ok(Presence::Otherwise));
        check("user", r#"{"profile": {"user": "x"}, "email": "y"}"#, Ok(Presence::Absent));
        check("user", "{}", Ok(Presence::Absent));
        check("user", "\"alice\"", Ok(Presence::Absent));
    }

    #[test]
    fn what_some_application_reads_differently_is_not_understood() {
        check("user", r#"{"user": "alice", "user": "bob"}"#, Err(NotUnderstood::Repeated));
        check("user", r#"{"user": "alice", "USER": "bob"}"#, Err(NotUnderstood::Repeated));
        check("user", r#"{"": {"user": "x"}, "user": "alice"}"#, Err(NotUnderstood::Repeated));
        check("user", r#"{"user": ["alice"]}"#, Err(NotUnderstood::Value));
        check("user", r#"{"user": {"$eq": "alice"}}"#, Err(NotUnderstood::Value));
        for number in ["1e2", "7.0", "-0", "9007199254740993"] {
            check("user", &format!("{{\"user\": {number}}}"), Err(NotUnderstood::Value));
        }
        check("user", r#"[{"user": "alice"}]"#, Err(NotUnderstood::Value));
        check("a.user", r#"{"a": [{"user": "alice"}]}"#, Err(NotUnderstood::Value));
        check("user.id", r#"{"user.id": 7}"#, Err(NotUnderstood::Name));
        check("user", r#"{"user[]": "alice"}"#, Err(NotUnderstood::Name));
        check("user", r#"{"user\u0000x": "alice"}"#, Err(NotUnderstood::Name));
        check("user", r#"{"us er": "alice"}"#, Err(NotUnderstood::Name));
        check("a.user", r#"{"a": {" user": "alice"}}"#, Err(NotUnderstood::Name));
    }

    #[test]
    fn other_texts_are_not_json() {
        for text in ["", "// x\n{}", "# x\n{}", ")]}'\n{}", "{}{}", "{'a': 1}", "{a: 1}", "[1,]", "\u{feff}{}", "NaN"] {
            assert!(!is_json(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_a_library_writes_is_understood_and_read(
            fields in prop::collection::btree_map("x[a-z]{1,6}", "[ -~\u{e9}\n\"\\\\]{0,12}", 0..6),
            value in "[ -~\u{e9}\"\\\\]{0,12}",
        ) {
            let mut document: serde_json::Map<_, _> = fields.into_iter().map(|(name, value)| (name, value.into())).collect();
            document.insert("username".to_owned(), value.clone().into());
            let text = serde_json::to_string(&document).unwrap();
            check("username", &text, Ok(Presence::Once));
            prop_assert_eq!(json::values(text.as_bytes(), "username"), [value]);
        }
    }
}
