//! What every value of the configuration has: a reader, a schema, and its place.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::config::mistakes::Mistakes;
use crate::config::source::SourceRange;
use crate::config::yaml::Node;

/// A value that can be in the configuration.
pub trait RawValue: Sized {
    /// Reads it; `None`: it was not what was expected, which has been reported.
    fn read(node: &Node, mistakes: &mut Mistakes) -> Option<Self>;

    /// Its JSON Schema. Sections are added to `definitions` under their names.
    fn schema(definitions: &mut BTreeMap<&'static str, Value>) -> Value;
}

/// A value with its place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Spanned<T> {
    pub value: T,
    pub at: SourceRange,
}

/// A text that is not parsed yet.
pub type Text = Spanned<String>;
