//! One part of a key, with its values in a request.

use serde::Serialize;

use crate::key::KeyPart;
use crate::key::Source;
use crate::key::extract;

/// One part of a key, and its values in the request. A missing value is the empty one.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct KeyPartExplanation {
    pub selector: String,
    pub values: Vec<String>,
}

pub(super) fn explain_part(part: &KeyPart, source: &Source<'_>) -> KeyPartExplanation {
    let mut values: Vec<String> = Vec::new();
    if let Ok(found) = extract::values(part, source) {
        values.extend(found.values.into_iter().map(std::borrow::Cow::into_owned));
    }
    KeyPartExplanation { selector: part.selector.to_string(), values }
}
