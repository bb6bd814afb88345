//! The keys of a section: which are known, which are missing, and what stands under each.

use std::collections::BTreeMap;

use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::value::RawValue;
use crate::config::mistakes::Mistakes;
use crate::config::source::SourceRange;
use crate::config::yaml::Content;
use crate::config::yaml::MapKey;
use crate::config::yaml::Node;
use crate::spelling::listed;
use crate::spelling::nearest;

/// What stands under a key.
#[derive(Clone, Debug, Default)]
pub enum Field<T> {
    /// The key is not there.
    #[default]
    Absent,
    /// It is, with a mistake that has been reported.
    Wrong,
    Given {
        key: SourceRange,
        value: T,
    },
}

impl<T> Field<T> {
    pub fn get(&self) -> Option<&T> {
        match self {
            Self::Given { value, .. } => Some(value),
            Self::Absent | Self::Wrong => None,
        }
    }

    /// Where the key stands, when its value is good.
    pub fn key(&self) -> Option<SourceRange> {
        match self {
            Self::Given { key, .. } => Some(*key),
            Self::Absent | Self::Wrong => None,
        }
    }

    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

impl<T: RawValue> Field<T> {
    pub fn read(entries: &Entries<'_>, key: &str, mistakes: &mut Mistakes) -> Self {
        let Some((name, node)) = entries.known.iter().find(|(name, _)| name.text == key) else {
            // Whoever misspelt a key did not leave it out.
            return if entries.misspelt.contains(&key) { Self::Wrong } else { Self::Absent };
        };
        if node.content == Content::Nothing {
            mistakes.report(
                name.at,
                format!("`{key}` has no value"),
                "write one after the colon, or remove the key: what is left out has its default",
            );
            return Self::Wrong;
        }
        match T::read(node, mistakes) {
            Some(value) => Self::Given { key: name.at, value },
            None => Self::Wrong,
        }
    }
}

/// The keys of a section.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    pub known: &'static [&'static str],
    /// With an example of each.
    pub required: &'static [(&'static str, &'static str)],
    /// Keys that a later version knows, and what to do until then.
    pub later: &'static [(&'static str, &'static str)],
}

/// What stands in a section's map.
#[derive(Clone, Debug)]
pub struct Entries<'n> {
    known: &'n [(MapKey, Node)],
    /// Keys that were probably meant by unknown ones.
    misspelt: Vec<&'static str>,
}

/// The entries of a section's map, unknown and missing keys reported.
pub fn entries<'n>(node: &'n Node, keys: &Keys, mistakes: &mut Mistakes) -> Option<Entries<'n>> {
    let Content::Map(entries) = &node.content else {
        mistakes.report(
            node.at,
            format!("expected a map, found {}", node.kind()),
            format!("its keys are {}", listed(keys.known)),
        );
        return None;
    };
    let misspelt: Vec<_> = entries.iter().filter_map(|(name, _)| refuse_unknown(name, keys, mistakes)).collect();
    for (key, example) in keys.required {
        if !misspelt.contains(key) && !entries.iter().any(|(name, _)| name.text == *key) {
            mistakes.report(node.at, format!("`{key}` is missing"), *example);
        }
    }
    Some(Entries { known: entries, misspelt })
}

/// Reports a key that is not known; the one that was probably meant.
fn refuse_unknown(name: &MapKey, keys: &Keys, mistakes: &mut Mistakes) -> Option<&'static str> {
    let key = name.text.as_str();
    if keys.known.contains(&key) {
        return None;
    }
    if let Some((_, help)) = keys.later.iter().find(|(late, _)| *late == key) {
        not_built(name.at, key, help, mistakes);
        return None;
    }
    let near = nearest(key, keys.known);
    let help = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the keys here are {}", listed(keys.known)),
    };
    mistakes.report(name.at, format!("unknown key `{key}`"), help);
    near
}

/// Refuses what the format knows and this version does not: nothing is ever silently ignored.
pub fn not_built(at: SourceRange, what: &str, help: &str, mistakes: &mut Mistakes) {
    mistakes.report(at, format!("`{what}` is not built into this version yet"), help);
}

/// A key as it stands in the file: `r#match` is `match`.
pub const fn written(field: &'static str) -> &'static str {
    match field.as_bytes() {
        [b'r', b'#', ..] => field.split_at(2).1,
        _ => field,
    }
}

/// Puts the schema of a section among the definitions, and answers with the reference to it.
pub fn define(
    name: &'static str,
    about: &str,
    keys: &Keys,
    definitions: &mut BTreeMap<&'static str, Value>,
    properties: impl FnOnce(&mut BTreeMap<&'static str, Value>) -> Vec<(&'static str, &'static str, Value)>,
) -> Value {
    if !definitions.contains_key(name) {
        // Stands in while the properties are described, so that a section may hold itself.
        definitions.insert(name, Value::Null);
        let mut described = Map::new();
        for (key, doc, mut schema) in properties(definitions) {
            schema["description"] = json!(unwrapped(doc));
            described.insert(key.to_owned(), schema);
        }
        let mut schema = json!({
            "type": "object",
            "description": unwrapped(about),
            "additionalProperties": false,
            "properties": described,
        });
        if !keys.required.is_empty() {
            schema["required"] = keys.required.iter().map(|(key, _)| *key).collect();
        }
        definitions.insert(name, schema);
    }
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// A doc comment as one paragraph.
fn unwrapped(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}
