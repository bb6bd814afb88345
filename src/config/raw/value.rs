//! What every value of the configuration has: a reader, a schema, and its place.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::config::mistakes::Mistakes;
use crate::config::source::SourceRange;
use crate::config::yaml::Node;

/// Something that can stand in the configuration.
pub trait RawValue: Sized {
    /// Reads it; `None` when it is not what was expected, which is then reported.
    fn read(node: &Node, mistakes: &mut Mistakes) -> Option<Self>;

    /// Its JSON Schema. Sections go into `definitions` under their names.
    fn schema(definitions: &mut BTreeMap<&'static str, Value>) -> Value;
}

/// A value and where it stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Spanned<T> {
    pub value: T,
    pub at: SourceRange,
}

/// A text whose meaning is not known yet.
pub type Text = Spanned<String>;
