//! One part of a key, as a request has it.

use serde::Serialize;

use crate::key::KeyPart;
use crate::key::Source;
use crate::key::extract;

/// One part of a key, and what the request has there. The empty value stands for what is missing.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct KeyPartExplanation {
    pub selector: String,
    pub values: Vec<String>,
}

/// A part of a key, and what the request has there.
pub(super) fn explain_part(part: &KeyPart, source: &Source<'_>) -> KeyPartExplanation {
    let mut values: Vec<String> = Vec::new();
    if let Ok(found) = extract::values(part, source) {
        values.extend(found.values.into_iter().map(std::borrow::Cow::into_owned));
    }
    KeyPartExplanation { selector: part.selector.to_string(), values }
}
