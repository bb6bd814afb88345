//! Lists, and maps whose keys are names that the operator chooses.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::grammar::Bounds;
use crate::config::diagnostic::Mistakes;
use crate::config::source::SourceRange;
use crate::config::yaml::{Content, Node};
use crate::words::word::Help;

/// A list.
#[derive(Clone, Debug)]
pub struct ListOf<T> {
    pub at: SourceRange,
    pub items: Vec<T>,
}

impl<T: RawValue> RawValue for ListOf<T> {
    fn read(node: &Node, mistakes: &mut Mistakes) -> Option<Self> {
        let Content::List(nodes) = &node.content else {
            mistakes.report(
                node.at,
                format!("expected a list, found {}", node.kind()),
                "put `- ` before each entry, or the entries into `[` and `]`",
            );
            return None;
        };
        Some(Self { at: node.at, items: read_all(nodes, mistakes) })
    }

    fn schema(definitions: &mut BTreeMap<&'static str, Value>) -> Value {
        json!({ "type": "array", "items": T::schema(definitions) })
    }
}

/// A list, or a single entry without brackets.
#[derive(Clone, Debug)]
pub struct OneOrList<T> {
    pub at: SourceRange,
    pub items: Vec<T>,
}

impl<T: RawValue> RawValue for OneOrList<T> {
    fn read(node: &Node, mistakes: &mut Mistakes) -> Option<Self> {
        let items = match &node.content {
            Content::List(nodes) => read_all(nodes, mistakes),
            _ => vec![T::read(node, mistakes)?],
        };
        Some(Self { at: node.at, items })
    }

    fn schema(definitions: &mut BTreeMap<&'static str, Value>) -> Value {
        let one = T::schema(definitions);
        json!({ "anyOf": [one, { "type": "array", "items": one }] })
    }
}

impl<T: BoundedValue> BoundedValue for OneOrList<T> {
    fn schema_within(definitions: &mut BTreeMap<&'static str, Value>, bounds: Bounds) -> Value {
        let one = T::schema_within(definitions, bounds);
        json!({ "anyOf": [one, { "type": "array", "items": one }] })
    }
}

/// The valid entries. The others have been reported.
fn read_all<T: RawValue>(nodes: &[Node], mistakes: &mut Mistakes) -> Vec<T> {
    nodes.iter().filter_map(|node| present(node, mistakes).and_then(|node| T::read(node, mistakes))).collect()
}

fn present<'n>(node: &'n Node, mistakes: &mut Mistakes) -> Option<&'n Node> {
    if node.content == Content::Nothing {
        mistakes.report(node.at, "this entry is empty", "write a value after the dash, or remove the line");
        return None;
    }
    Some(node)
}

/// A map from names to one kind of value, in the order of the file.
#[derive(Clone, Debug)]
pub struct MapOf<T> {
    pub at: SourceRange,
    pub entries: Vec<(Text, T)>,
}

impl<T: RawValue> RawValue for MapOf<T> {
    fn read(node: &Node, mistakes: &mut Mistakes) -> Option<Self> {
        let Content::Map(entries) = &node.content else {
            mistakes.report(
                node.at,
                format!("expected a map, found {}", node.kind()),
                "write a name, a colon, and its value",
            );
            return None;
        };
        let mut read = Vec::with_capacity(entries.len());
        for (name, node) in entries {
            if node.content == Content::Nothing {
                mistakes.report(name.at, format!("`{}` has no value", name.text), "write one after the colon");
                continue;
            }
            if let Some(value) = T::read(node, mistakes) {
                read.push((Text { value: name.text.clone(), at: name.at }, value));
            }
        }
        Some(Self { at: node.at, entries: read })
    }

    fn schema(definitions: &mut BTreeMap<&'static str, Value>) -> Value {
        json!({ "type": "object", "additionalProperties": T::schema(definitions) })
    }
}

// What every value of the configuration has: a reader, a schema, and its place.

/// A value that can be in the configuration.
pub trait RawValue: Sized {
    /// Reads it; `None`: it was not what was expected, which has been reported.
    fn read(node: &Node, mistakes: &mut Mistakes) -> Option<Self>;

    /// Its JSON Schema. Sections are added to `definitions` under their names.
    fn schema(definitions: &mut BTreeMap<&'static str, Value>) -> Value;
}

/// A value that has a least and a most.
pub trait BoundedValue {
    /// Its JSON Schema within bounds.
    fn schema_within(definitions: &mut BTreeMap<&'static str, Value>, bounds: Bounds) -> Value;
}

/// A value with its place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Spanned<T> {
    pub value: T,
    pub at: SourceRange,
}

/// A text that is not parsed yet.
pub type Text = Spanned<String>;

// Why a text is not valid for its key, and what to write instead.

/// Why a text is not valid for its key, and what to write instead.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct InvalidValue {
    pub message: String,
    pub help: String,
}

impl InvalidValue {
    pub fn report(self, at: SourceRange, mistakes: &mut Mistakes) {
        mistakes.report(at, self.message, self.help);
    }

    /// The error for a text that looks like a glob where none is allowed.
    pub fn of_glob(text: &str, what: &str, help: impl Into<String>) -> Self {
        Self::with(format!("`{text}` looks like a glob, and {what} is taken literally"), help)
    }

    pub fn with(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), help: help.into() }
    }
}

impl<E: Help> From<E> for InvalidValue {
    fn from(error: E) -> Self {
        Self::with(error.to_string(), error.help())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::limit::Rates;

    #[track_caller]
    fn check(text: &str, message: &str, help: &str) {
        let problem = text.parse::<Rates>().map_err(InvalidValue::from).unwrap_err();
        assert_eq!((problem.message.as_str(), problem.help.as_str()), (message, help));
    }

    #[test]
    fn the_message_and_the_help_are_those_of_the_error() {
        check("10", "`10` is not a rate", "write a count and a window such as `10/minute` or `10 per 3 minutes`");
        check(
            "1/s, 2/s",
            "two rates for the same window, `1/second` and `2/second`",
            "write the smaller one, `1/second`",
        );
        check("1 per 101 years", "a window of 101 years is too long", "write at most `100 years`");
    }
}
