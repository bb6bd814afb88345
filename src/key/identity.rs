//! Who asks, as far as it is known for certain.

use std::borrow::Cow;

use serde_json::Value;

/// What sessions and verified tokens prove of a request. Nothing, where neither is configured.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity<'a> {
    /// The marks of the accounts whose sessions the request carries, each once: hexadecimal digits.
    pub users: &'a [Box<str>],
    /// The claims of the token that the request carries, if that verifies.
    pub claims: Option<&'a Value>,
}

impl<'a> Identity<'a> {
    /// Calls `found` with every value of the claim at a dotted path: texts, numbers and booleans, and those in a list.
    pub(super) fn each_claim(&self, path: &str, found: &mut dyn FnMut(Cow<'a, str>)) {
        if let Some(claims) = self.claims {
            each_at(claims, path, found);
        }
    }
}

/// A name may itself have dots, as those of claims that are addresses have.
fn each_at<'a>(claims: &'a Value, path: &str, found: &mut dyn FnMut(Cow<'a, str>)) {
    match claims {
        Value::Object(fields) => {
            for (name, value) in fields {
                match path.strip_prefix(name.as_str()) {
                    Some("") => each_scalar(value, found),
                    Some(rest) => {
                        if let Some(rest) = rest.strip_prefix('.') {
                            each_at(value, rest, found);
                        }
                    }
                    None => {}
                }
            }
        }
        Value::Array(elements) => elements.iter().for_each(|element| each_at(element, path, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn each_scalar<'a>(value: &'a Value, found: &mut dyn FnMut(Cow<'a, str>)) {
    match value {
        Value::String(text) => found(Cow::Borrowed(text)),
        Value::Number(number) => found(Cow::Owned(number.to_string())),
        Value::Bool(truth) => found(Cow::Borrowed(if *truth { "true" } else { "false" })),
        Value::Array(elements) => elements.iter().for_each(|element| each_scalar(element, found)),
        Value::Null | Value::Object(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(claims: &Value, path: &str, expected: &[&str]) {
        let identity = Identity { claims: Some(claims), users: &[] };
        let mut found = Vec::new();
        identity.each_claim(path, &mut |value| found.push(value.into_owned()));
        assert_eq!(found, expected, "{path} of {claims}");
    }

    #[test]
    fn texts_numbers_and_booleans_are_values_and_so_is_each_of_a_list() {
        let claims =
            json!({"sub": "alice", "n": 7, "admin": true, "a": {"b": "x"}, "roles": ["r", 1, ["s"], {}, null]});
        check(&claims, "sub", &["alice"]);
        check(&claims, "n", &["7"]);
        check(&claims, "admin", &["true"]);
        check(&claims, "a.b", &["x"]);
        check(&claims, "roles", &["r", "1", "s"]);
    }

    #[test]
    fn what_is_not_there_has_no_value() {
        let claims = json!({"a": {"b": {}}, "n": null});
        for path in ["sub", "a", "a.b", "a.b.c", "n", "a.", "."] {
            check(&claims, path, &[]);
        }
        Identity::default().each_claim("sub", &mut |value| panic!("{value}"));
    }

    #[test]
    fn a_name_with_dots_is_a_name() {
        let claims = json!({"https://example.com/plan": "gold", "https://example": {"com/plan": "other"}});
        check(&claims, "https://example.com/plan", &["other", "gold"]);
    }
}
