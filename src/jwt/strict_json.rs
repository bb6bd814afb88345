//! JSON that every parser reads alike: an object in which no name is repeated, at any depth.

use std::fmt;

use serde::Deserialize;
use serde::Deserializer;
use serde::de::DeserializeSeed;
use serde::de::Error;
use serde::de::MapAccess;
use serde::de::SeqAccess;
use serde::de::Visitor;
use serde_json::Map;
use serde_json::Number;
use serde_json::Value;

/// Reads one object and nothing else. Where a name is repeated, parsers take the first value, the last one, or none.
pub fn object(text: &[u8]) -> Result<Map<String, Value>, serde_json::Error> {
    serde_json::from_slice::<StrictObject>(text).map(|object| object.0)
}

struct StrictObject(Map<String, Value>);

impl<'de> Deserialize<'de> for StrictObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Strict).map(|value| match value {
            Value::Object(object) => Self(object),
            // The deserializer calls `visit_map` or fails.
            _ => Self(Map::new()),
        })
    }
}

/// Reads any value.
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number that is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element_seed(Strict)? {
            list.push(element);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if object.contains_key(&name) {
                return Err(A::Error::custom("a name is repeated"));
            }
            let value = members.next_value_seed(Strict)?;
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_read_as_by_everyone() {
        let text = r#" {"a": [1, -2, 1.5, "x", true, null, {"b": {}}], "c": "\u00e4"} "#;
        assert_eq!(Value::Object(object(text.as_bytes()).unwrap()), serde_json::from_str::<Value>(text).unwrap());
    }

    #[test]
    fn what_parsers_read_differently_is_refused() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
        for text in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"b":[{"a":1,"a":2}]}"#,
            r#"{"a":1}{"a":2}"#,
            r#"{"a":1,}"#,
            r#"{"a":NaN}"#,
            r#"{"a":1e400}"#,
            r#"{"a":"\ud800"}"#,
            "[1]",
            "\"a\"",
            "1",
            "",
            "\u{feff}{}",
            &deep,
        ] {
            assert!(object(text.as_bytes()).is_err(), "{text}");
        }
        assert!(object(b"{\"a\":\"\xff\"}").is_err());
    }
}
