//! Lists, and maps whose keys are names that the operator chooses.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::json;

use super::value::RawValue;
use super::value::Text;
use crate::config::mistakes::Mistakes;
use crate::config::source::SourceRange;
use crate::config::yaml::Content;
use crate::config::yaml::Node;

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
