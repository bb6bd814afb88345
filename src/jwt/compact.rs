//! A token in the compact form of RFC 7515: `header.payload.signature`, each in Base64 for URLs.

use serde_json::Map;
use serde_json::Value;

use super::Algorithm;
use super::Unverified;
use super::strict_json;
use crate::base64;

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

/// Longer tokens do not fit the header fields of most servers.
pub const MAX_LENGTH: usize = 8 * 1024;

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
        let payload = strict_json::object(&part(payload)?)
            .map_err(|_| Unverified::NotUnderstood("its payload is no JSON object, or one that repeats a name"))?;
        let signature_length = part(signature)?.len();
        Ok(Self { algorithm, key_id, payload, signed, signature, signature_length })
    }
}

/// Whether any library takes a text for a token: it has three parts or more, and the first is the beginning of a JSON object,
/// however it is encoded.
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
    let mut header = strict_json::object(header)
        .map_err(|_| Unverified::NotUnderstood("its header is no JSON object, or one that repeats a name"))?;
    // Extensions change what is signed, or what it means.
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
