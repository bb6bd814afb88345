//! A strict check of JSON against a schema of an `OpenAPI` description: a field that is not described is a mistake too.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use regex::Regex;
use serde_json::Value;

/// What is wrong with the value, each with its path. Empty: the value is as described.
pub fn mistakes(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(document, schema, value, "$", &mut found);
    found
}

fn check(document: &Value, schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = document.pointer(reference.trim_start_matches('#')).expect("a reference has a target");
        return check(document, target, value, path, found);
    }
    if let Some(kinds) = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array()) {
        if !kinds.iter().any(|kind| mistakes(document, kind, value).is_empty()) {
            found.push(format!("{path} is none of {kinds:?}: {value}"));
        }
        return;
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        check(document, part, value, path, found);
    }
    let types = schema["type"].as_array().cloned().unwrap_or_else(|| vec![schema["type"].clone()]);
    if !types.iter().any(|name| name.is_null() || has_type(value, name.as_str().expect("the name of a type"))) {
        found.push(format!("{path} is no {types:?}: {value}"));
    }
    if schema["enum"].as_array().is_some_and(|allowed| !allowed.contains(value)) {
        found.push(format!("{path} is none of {}: {value}", schema["enum"]));
    }
    if schema["minimum"].as_f64().is_some_and(|least| value.as_f64().is_some_and(|number| number < least)) {
        found.push(format!("{path} is too small: {value}"));
    }
    if schema["maximum"].as_f64().is_some_and(|most| value.as_f64().is_some_and(|number| number > most)) {
        found.push(format!("{path} is too large: {value}"));
    }
    if let (Some(pattern), Some(text)) = (schema["pattern"].as_str(), value.as_str())
        && !regex(pattern).is_match(text)
    {
        found.push(format!("{path} does not match {pattern}: {value}"));
    }
    for (key, count) in
        [("Items", value.as_array().map(Vec::len)), ("Properties", value.as_object().map(serde_json::Map::len))]
    {
        let Some(count) = count else { continue };
        let bound = |name: &str| schema[format!("{name}{key}")].as_u64().and_then(|bound| usize::try_from(bound).ok());
        if bound("min").is_some_and(|least| count < least) || bound("max").is_some_and(|most| count > most) {
            found.push(format!("{path} has {count} {key}"));
        }
    }
    if schema["not"].is_object() && mistakes(document, &schema["not"], value).is_empty() {
        found.push(format!("{path} is excluded: {value}"));
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        check(document, &schema["items"], item, &format!("{path}[{index}]"), found);
    }
    if let Some(object) = value.as_object() {
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !object.contains_key(name) {
                found.push(format!("{path}.{name} is missing"));
            }
        }
        for name in object.keys().filter(|_| schema["propertyNames"].is_object()) {
            check(document, &schema["propertyNames"], &Value::String(name.clone()), &format!("{path}.{name}"), found);
        }
        let is_open = schema["properties"].is_null();
        for (name, field) in object {
            let path = format!("{path}.{name}");
            match (&schema["properties"][name], &schema["additionalProperties"]) {
                (described @ Value::Object(_), _) | (_, described @ Value::Object(_)) => {
                    check(document, described, field, &path, found);
                }
                (_, Value::Null) if is_open => {}
                (_, Value::Bool(true)) => {}
                _ => found.push(format!("{path} is not described")),
            }
        }
    }
}

/// The compiled pattern. Each is compiled once.
fn regex(pattern: &str) -> Regex {
    static COMPILED: LazyLock<Mutex<HashMap<String, Regex>>> = LazyLock::new(Mutex::default);
    let mut compiled = COMPILED.lock().expect("no test panics here");
    let made = || Regex::new(pattern).expect("a pattern of a schema");
    compiled.entry(pattern.to_owned()).or_insert_with(made).clone()
}

fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => panic!("no type of JSON: {name}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_difference_from_the_schema_is_found() {
        let document = json!({"components": {"schemas": {"Ban": {
            "type": "object",
            "required": ["id"],
            "properties": {"id": {"type": "string"}, "left": {"type": ["integer", "null"], "minimum": 0},
                "kind": {"enum": ["a", "b"]}, "key": {"type": "object", "additionalProperties": {"type": "string"}}},
        }}}});
        let list = json!({"type": "array", "items": {"$ref": "#/components/schemas/Ban"}});
        let count = |value: Value| mistakes(&document, &list, &value).len();
        assert_eq!(count(json!([])), 0);
        assert_eq!(count(json!([{"id": "x", "left": null, "kind": "a", "key": {"client_ip": "y"}}])), 0);
        for wrong in [
            json!({}),
            json!([{"left": 1}]),
            json!([{"id": 7}]),
            json!([{"id": "x", "left": -1}]),
            json!([{"id": "x", "left": 1.5}]),
            json!([{"id": "x", "kind": "c"}]),
            json!([{"id": "x", "key": {"client_ip": 7}}]),
            json!([{"id": "x", "extra": true}]),
        ] {
            assert_eq!(count(wrong.clone()), 1, "{wrong}");
        }
    }
}
