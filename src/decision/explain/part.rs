//! One part of a key, with its values in a request.

use serde::Serialize;

use crate::key::KeyPart;
use crate::key::Source;
use crate::key::display::in_clear;
use crate::key::extract;
use crate::request::NotUnderstood;

/// One part of a key, and its values in the request or the descriptor.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct KeyPartExplanation {
    pub selector: String,
    pub values: Vec<String>,
    /// Why there may be other values. `None`: they are surely all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<NotUnderstood>,
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
    let mut unread = None;
    if let Ok(found) = extract::values(part, source) {
        values.extend(found.values.iter().map(|value| in_clear(part, value)));
        unread = found.unread;
    }
    KeyPartExplanation { selector: part.selector.to_string(), values, unread, empty: EmptyValue::Missing }
}
