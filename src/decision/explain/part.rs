//! One part of a key, with its values in a request.

use serde::Serialize;

use crate::key::KeyPart;
use crate::key::Source;
use crate::key::display::in_clear;
use crate::key::extract;

/// One part of a key, and its values in the request or the descriptor.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct KeyPartExplanation {
    pub selector: String,
    pub values: Vec<String>,
    #[serde(skip)]
    pub empty: EmptyValue,
}

/// What an empty value is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EmptyValue {
    /// In a request a field that is empty counts like one that is missing.
    Missing,
    /// An entry of a descriptor is there without a value.
    Present,
}

pub(super) fn explain_part(part: &KeyPart, source: &Source<'_>) -> KeyPartExplanation {
    let mut values: Vec<String> = Vec::new();
    if let Ok(found) = extract::values(part, source) {
        values.extend(found.values.iter().map(|value| in_clear(part, value)));
    }
    KeyPartExplanation { selector: part.selector.to_string(), values, empty: EmptyValue::Missing }
}
