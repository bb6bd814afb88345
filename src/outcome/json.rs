//! Reads the value at a dotted path of a JSON answer.

use serde_json::Value;

/// Whether the value at a dotted path equals `expected`: strings without their quotes, `true`, `false` and `null` as in
/// JSON, numbers by their value. Array elements are named by their position, from 0.
pub fn matches(document: &Value, path: &str, expected: &str) -> bool {
    at(document, path).is_some_and(|value| is_spelt(value, expected))
}

/// The text at a dotted path, of each document that has one there.
pub fn texts(documents: &[Value], path: &str) -> impl Iterator<Item = Box<str>> {
    let text = |document| match at(document, path)? {
        Value::String(text) if !text.is_empty() => Some(text.as_str().into()),
        Value::Number(number) => Some(number.to_string().into()),
        _ => None,
    };
    documents.iter().filter_map(text)
}

fn at<'v>(document: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(document, |value, name| match value {
        Value::Object(fields) => fields.get(name),
        Value::Array(elements) => elements.get(name.parse::<usize>().ok()?),
        _ => None,
    })
}

fn is_spelt(value: &Value, expected: &str) -> bool {
    match value {
        Value::Null => expected == "null",
        Value::Bool(value) => expected == if *value { "true" } else { "false" },
        Value::Number(number) => {
            let same = || {
                number
                    .as_f64()
                    .zip(expected.parse::<f64>().ok())
                    .is_some_and(|(one, other)| one.total_cmp(&other).is_eq())
            };
            number.to_string() == expected || same()
        }
        Value::String(text) => text == expected,
        Value::Array(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(document: &str, path: &str, expected: &str, expected_match: bool) {
        let document = serde_json::from_str(document).expect("JSON");
        assert_eq!(matches(&document, path, expected), expected_match, "{path}: {expected}");
    }

    #[test]
    fn a_value_is_found_at_its_path_alone() {
        check(r#"{"ok": false}"#, "ok", "false", true);
        check(r#"{"ok": true}"#, "ok", "false", false);
        check(r#"{"OK": false}"#, "ok", "false", false);
        check(r#"{"error": {"code": "bad_password"}}"#, "error.code", "bad_password", true);
        check(r#"{"user": {"ok": true}, "ok": false}"#, "ok", "true", false);
        check(r#"{"errors": [{"code": 7}]}"#, "errors.0.code", "7", true);
        check(r#"{"errors": []}"#, "errors.0.code", "7", false);
        check(r#"{"token": null}"#, "token", "null", true);
        check("{}", "token", "null", false);
        check(r#"{"code": 1.0}"#, "code", "1", true);
        check(r#"{"code": {"a": 1}}"#, "code", "1", false);
    }

    proptest! {
        #[test]
        fn any_path_of_any_document_is_looked_at(path in "[a.0-9]{0,12}", value in "[a-z0-9.e+-]{0,8}") {
            let document = serde_json::json!({"a": [{"a": 1.0}, true, null, "x", 1e300], "": {"": "y"}, "0": [[2]]});
            prop_assert!(!matches(&document, &path, &value) || !value.is_empty());
        }
    }
}
