//! JSON as clients write it.

use serde::de::IgnoredAny;

use super::Presence;
use crate::rules::request::json::{JsonLeaf, JsonPiece, scan};
use crate::rules::request::strict::content_type::charset;
use crate::rules::request::strict::pairs::{NameMatch, compare};
use crate::rules::request::strict::xml_rpc;
use crate::rules::request::text::is_same_but_for_case;
use crate::rules::request::xml::ElementPath;
use crate::rules::request::{NotUnderstood, xml};

/// Many applications read numbers as floating-point numbers, which are exact up to this many digits.
const MOST_DIGITS: usize = 15;

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

/// Whether some application may read a name of an object as a step of the path.
fn doubtful_name(outside: &str, name: &str, path: &str) -> Option<NotUnderstood> {
    let below = asked_below(path, outside)?;
    let step = below.split('.').next().unwrap_or_default();
    let is_other = |asked| matches!(compare(name, asked), NameMatch::Other);
    let is_step = matches!(compare(name, step), NameMatch::Exact | NameMatch::OtherCase) && !name.contains('.');
    let is_none = is_other(step) && is_other(below);
    if is_step || is_none { None } else { Some(NotUnderstood::Name) }
}

/// The rest of the path below the object or list at `outside`.
fn asked_below<'p>(path: &'p str, outside: &str) -> Option<&'p str> {
    if outside.is_empty() {
        return Some(path);
    }
    let steps = outside.split('.').count();
    let end = path.match_indices('.').nth(steps - 1)?.0;
    is_same_but_for_case(&path[..end], outside).then(|| &path[end + 1..])
}

// XML as clients write it.

/// Whether a text is XML from its first to its last byte, with neither a document type nor entities of its own, and if it may
/// be a call of XML-RPC, exactly one.
pub(super) fn is_xml(text: &str) -> bool {
    text.starts_with('<')
        && memchr::memmem::find(text.as_bytes(), b"<!DOCTYPE").is_none()
        && xml::declared_encoding(text.as_bytes()).is_none_or(|name| charset(name).is_some())
        && xml::is_well_formed(text.as_bytes())
        && (!xml_rpc::may_be_a_call(text) || xml_rpc::is_call(text))
}

/// How often the element stands in a text that is XML.
pub(super) fn xml_presence(text: &[u8], path: &ElementPath<'_>) -> Result<Presence, NotUnderstood> {
    let texts = xml::texts(text, path);
    if texts.has_other_readings {
        return Err(NotUnderstood::Value);
    }
    Ok(match texts.elements {
        0 => Presence::Absent,
        1 => Presence::Once,
        _ => Presence::Otherwise,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rules::request::json;

    #[track_caller]
    fn check(path: &str, text: &str, expected: Result<Presence, NotUnderstood>) {
        assert!(is_xml(text), "{text}");
        assert_eq!(xml_presence(text.as_bytes(), &ElementPath::dotted(path)), expected, "{path} of {text}");
    }

    #[test]
    fn an_element_with_one_text_is_understood() {
        let call = "<?xml version=\"1.0\"?>\n<methodCall><methodName>wp.getUsersBlogs</methodName><params>\
            <param><value><string>alice</string></value></param><param><value>secret</value></param></params></methodCall>";
        check("params.param.0.value", call, Ok(Presence::Once));
        check("param.value", call, Ok(Presence::Otherwise));
        check("username", call, Ok(Presence::Absent));
        check("username", "<s:a xmlns:s='u'><s:username>al&#105;ce</s:username></s:a>", Ok(Presence::Once));
        check("u", "<u>  alice\r\n</u>", Ok(Presence::Once));
        check("u", "<u><![CDATA[alice]]></u>", Ok(Presence::Once));
    }

    #[test]
    fn an_element_that_applications_read_differently_is_not_understood() {
        check("u", "<u>ali<!-- x -->ce</u>", Err(NotUnderstood::Value));
        check("u", "<u>ali<![CDATA[ce]]></u>", Err(NotUnderstood::Value));
        check("u", "<u>ali<b>ce</b></u>", Err(NotUnderstood::Value));
        check("u", "<u><b>ali</b><b>ce</b></u>", Err(NotUnderstood::Value));
        check("u", "<a u='alice'><x/></a>", Err(NotUnderstood::Value));
        let decoys: String = (0..70).map(|i| format!("<u>{i}</u>")).collect::<Vec<_>>().concat();
        check("u", &format!("<a>{decoys}</a>"), Err(NotUnderstood::Value));
    }

    #[test]
    fn a_value_of_a_call_that_is_no_plain_text_is_not_understood() {
        let call = |value: &str| {
            format!(
                "<methodCall><methodName>a</methodName><params><param><value>{value}</value></param></params></methodCall>"
            )
        };
        for value in ["alice", "<string>alice</string>", "<int>7</int>", "<string><![CDATA[a<b]]></string>"] {
            check("params.param.0.value", &call(value), Ok(Presence::Once));
        }
        for value in [
            "<base64>!!YWxpY2U=</base64>",
            "<base64>YWxpY2U=</base64>",
            "<double>7.0</double>",
            "<boolean>1</boolean>",
            "<array><data><value>alice</value></data></array>",
            "<struct><member><name></name><value>alice</value></member></struct>",
        ] {
            check("params.param.0.value", &call(value), Err(NotUnderstood::Value));
        }
        check("value.base64", &call("<base64>YWxpY2U=</base64>"), Err(NotUnderstood::Value));
        check("a.base64", "<a><base64>YWxpY2U=</base64></a>", Ok(Presence::Once));
    }

    #[test]
    fn other_texts_are_not_xml() {
        for text in [
            "",
            " <a/>",
            "<a>",
            "<a></b>",
            "<!DOCTYPE a SYSTEM 'x'><a/>",
            "<?xml version='1.0' encoding='utf-7'?><a/>",
            "<a>&x;</a>",
            "<methodCall><methodName>a</methodName><value>alice</value></methodCall>",
            "<a><methodName>a</methodName><value>alice</value></a>",
        ] {
            assert!(!is_xml(text), "{text}");
        }
    }

    #[track_caller]
    fn check_json(path: &str, text: &str, expected: Result<Presence, NotUnderstood>) {
        assert!(is_json(text), "{text}");
        assert_eq!(presence(text.as_bytes(), path), expected, "{path} of {text}");
    }

    #[test]
    fn a_scalar_that_stands_at_the_path_once_is_understood() {
        check_json("user", r#"{"user": "alice", "other": ["user", {"user": "x"}]}"#, Ok(Presence::Once));
        check_json("user", r#"{"us\u0065r": "alice"}"#, Ok(Presence::Once));
        check_json("user.id", r#"{"user": {"id": 7, "name": "x"}}"#, Ok(Presence::Once));
        check_json("users.0.id", r#"{"users": [{"id": 7}, {"id": 8}]}"#, Ok(Presence::Once));
        check_json("user", r#"{"User": "alice"}"#, Ok(Presence::Otherwise));
        check_json("user", r#"{"user": true}"#, Ok(Presence::Otherwise));
        check_json("user", r#"{"user": null}"#, Ok(Presence::Otherwise));
        check_json("user", r#"{"profile": {"user": "x"}, "email": "y"}"#, Ok(Presence::Absent));
        check_json("user", "{}", Ok(Presence::Absent));
        check_json("user", "\"alice\"", Ok(Presence::Absent));
    }

    #[test]
    fn what_some_application_reads_differently_is_not_understood() {
        check_json("user", r#"{"user": "alice", "user": "bob"}"#, Err(NotUnderstood::Repeated));
        check_json("user", r#"{"user": "alice", "USER": "bob"}"#, Err(NotUnderstood::Repeated));
        check_json("user", r#"{"": {"user": "x"}, "user": "alice"}"#, Err(NotUnderstood::Repeated));
        check_json("user", r#"{"user": ["alice"]}"#, Err(NotUnderstood::Value));
        check_json("user", r#"{"user": {"$eq": "alice"}}"#, Err(NotUnderstood::Value));
        for number in ["1e2", "7.0", "-0", "9007199254740993"] {
            check_json("user", &format!("{{\"user\": {number}}}"), Err(NotUnderstood::Value));
        }
        check_json("user", r#"[{"user": "alice"}]"#, Err(NotUnderstood::Value));
        check_json("a.user", r#"{"a": [{"user": "alice"}]}"#, Err(NotUnderstood::Value));
        check_json("user.id", r#"{"user.id": 7}"#, Err(NotUnderstood::Name));
        check_json("user", r#"{"user[]": "alice"}"#, Err(NotUnderstood::Name));
        check_json("user", r#"{"user\u0000x": "alice"}"#, Err(NotUnderstood::Name));
        check_json("user", r#"{"us er": "alice"}"#, Err(NotUnderstood::Name));
        check_json("a.user", r#"{"a": {" user": "alice"}}"#, Err(NotUnderstood::Name));
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
            check_json("username", &text, Ok(Presence::Once));
            prop_assert_eq!(json::values(text.as_bytes(), "username"), [value]);
        }
    }
}
