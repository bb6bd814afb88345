//! A token in the compact form of RFC 7515: `header.payload.signature`, each in Base64 for URLs.

use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};

use super::{Algorithm, Unverified};
use crate::words::base64;

/// Longer tokens do not fit the header fields of most servers.
pub const MAX_LENGTH: usize = 8 * 1024;

/// A token that every library splits, decodes and parses alike. Nothing of it is verified.
#[derive(Clone, Debug)]
pub struct CompactToken<'t> {
    pub algorithm: Algorithm,
    /// `kid`: the name of the key.
    pub key_id: Option<String>,
    pub payload: Map<String, Value>,
    /// Header and payload, as they were sent.
    pub(super) signed: &'t str,
    /// As it was sent.
    pub(super) signature: &'t str,
    /// In bytes, decoded.
    pub(super) signature_length: usize,
}

impl<'t> CompactToken<'t> {
    pub fn parse(text: &'t str) -> Result<Self, Unverified> {
        if !may_be_a_token(text) {
            return Err(Unverified::NoToken);
        }
        if text.len() > MAX_LENGTH {
            return Err(Unverified::NotUnderstood("it is longer than 8 KiB"));
        }
        let mut parts = text.split('.');
        let (Some(header), Some(payload), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(Unverified::NotUnderstood("it has more than three parts"));
        };
        let signed = &text[..header.len() + 1 + payload.len()];
        let (algorithm, key_id) = read_header(&part(header)?)?;
        let payload = object(&part(payload)?)
            .map_err(|_| Unverified::NotUnderstood("its payload is no JSON object, or one that repeats a name"))?;
        let signature_length = part(signature)?.len();
        Ok(Self { algorithm, key_id, payload, signed, signature, signature_length })
    }
}

/// Whether some library takes a text for a token: it has three parts or more, and the first is the beginning of a JSON
/// object in any encoding.
fn may_be_a_token(text: &str) -> bool {
    let mut dots = memchr::memchr_iter(b'.', text.as_bytes());
    let (Some(end), Some(_)) = (dots.next(), dots.next()) else { return false };
    // A header that is longer than a token may be begins in its first bytes all the same.
    let header = base64::decode(&text.as_bytes()[..end.min(MAX_LENGTH)]);
    let header = header.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&header);
    header.trim_ascii_start().first() == Some(&b'{')
}

fn part(encoded: &str) -> Result<Vec<u8>, Unverified> {
    let decoded = base64::decode_url(encoded.as_bytes());
    decoded
        .ok_or(Unverified::NotUnderstood("a part of it is not in the one spelling of Base64 for URLs without padding"))
}

fn read_header(header: &[u8]) -> Result<(Algorithm, Option<String>), Unverified> {
    let mut header = object(header)
        .map_err(|_| Unverified::NotUnderstood("its header is no JSON object, or one that repeats a name"))?;
    // Extensions change which bytes are signed, or what they mean.
    if header.contains_key("crit") || header.contains_key("b64") {
        return Err(Unverified::NotUnderstood("its header has `crit` or `b64`, and no extension is known"));
    }
    if header.get("typ").is_some_and(|kind| !is_known_type(kind)) {
        return Err(Unverified::NotUnderstood("its `typ` is neither `JWT` nor `at+jwt`"));
    }
    let key_id = match header.remove("kid") {
        None => None,
        Some(Value::String(name)) => Some(name),
        Some(_) => return Err(Unverified::NotUnderstood("its `kid` is no text")),
    };
    match header.remove("alg") {
        Some(Value::String(name)) => match Algorithm::named(&name) {
            Some(algorithm) => Ok((algorithm, key_id)),
            None => Err(Unverified::Algorithm(name)),
        },
        _ => Err(Unverified::NotUnderstood("its `alg` is no text")),
    }
}

/// Whether a token of this type says who sends the request. Types are media types, compared without case (RFC 8725).
fn is_known_type(kind: &Value) -> bool {
    let Value::String(kind) = kind else { return false };
    let kind = kind.to_ascii_lowercase();
    matches!(kind.strip_prefix("application/").unwrap_or(&kind), "jwt" | "at+jwt")
}

// JSON that every parser reads alike: an object in which no name is repeated, at any depth.

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
