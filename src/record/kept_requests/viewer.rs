//! Who reads a story, and how much of a key they see.

use std::collections::BTreeMap;

use crate::key::OperatorKey;
use crate::key::OperatorPart;

/// Who reads a story.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Viewer {
    /// An operator of this gateway, who sees user names.
    ThisGateway,
    /// Everyone else.
    Others,
}

impl Viewer {
    /// The value of each part of a key.
    pub fn values(self, key: &OperatorKey) -> BTreeMap<String, String> {
        let value = |part: &OperatorPart| match (self, &part.masked) {
            (Self::Others, Some(masked)) => masked.clone(),
            _ => part.value.clone(),
        };
        key.parts.iter().map(|part| (part.selector.clone(), value(part))).collect()
    }
}
