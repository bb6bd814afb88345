//! `everything.yaml` and the schema have the same keys, each once and each with a description.

use std::collections::BTreeMap;
use std::fs;

use portcullis::config::diagnostic::Mistakes;
use portcullis::config::source::SourceText;
use portcullis::config::yaml::{Content, Node};
use portcullis::config::{schema, yaml};
use serde_json::Value;

pub(crate) const FILE: &str = "config/everything.yaml";

/// Keys by the section that defines them.
type Keys = BTreeMap<String, Vec<usize>>;

#[test]
fn every_key_of_the_schema_stands_in_the_file_and_the_other_way_round() {
    let schema = schema();
    let mut defined: Vec<String> = Vec::new();
    for (section, definition) in schema["$defs"].as_object().expect("definitions") {
        let properties = definition["properties"].as_object().expect("properties");
        defined.extend(properties.keys().map(|key| format!("{section}.{key}")));
    }
    let mut found = Keys::new();
    walk(&read(), &schema, &schema, &mut found);
    let written: Vec<String> = found.keys().cloned().collect();
    defined.sort();
    assert_eq!(written, defined);
}

#[test]
fn every_key_is_explained_where_it_stands_first() {
    let schema = schema();
    let text = with_alternatives(&fs::read_to_string(FILE).expect("the file"));
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Keys::new();
    walk(&read(), &schema, &schema, &mut found);
    for (key, places) in found {
        let explained = places.iter().any(|line| lines[line - 1].contains(" # "));
        // A map is explained by its keys.
        let opens = places.iter().any(|line| lines[line - 1].trim_end().ends_with(':'));
        assert!(explained || opens, "{key} at {places:?}");
    }
}

/// The text with the lines in force that need files of one's own.
pub(crate) fn uncommented(text: &str) -> String {
    text.replace("\n#  ", "\n  ")
}

/// The same, also with the lines in force that stand for another key beside them.
fn with_alternatives(text: &str) -> String {
    uncommented(text).replace("\n#|", "\n  ")
}

fn read() -> Node {
    tree(&with_alternatives(&fs::read_to_string(FILE).expect("the file")))
}

/// The tree of a text.
pub(crate) fn tree(text: &str) -> Node {
    let mut mistakes = Mistakes::default();
    let source = mistakes.source(SourceText::new(FILE, text.to_owned()));
    yaml::parse(text, source, &|_| None, &mut mistakes).expect("a tree")
}

/// Notes each key under the section of the schema that has it.
fn walk(node: &Node, described: &Value, schema: &Value, found: &mut Keys) {
    if let Some(reference) = described["$ref"].as_str() {
        let section = reference.trim_start_matches("#/$defs/");
        let definition = &schema["$defs"][section];
        let Content::Map(entries) = &node.content else { return };
        for (name, value) in entries {
            let property = &definition["properties"][&name.text];
            assert!(property.is_object(), "{section} has no key {}", name.text);
            found.entry(format!("{section}.{}", name.text)).or_default().push(name.at.line as usize);
            walk(value, property, schema, found);
        }
        return;
    }
    for choice in described["anyOf"].as_array().into_iter().flatten() {
        if fits(node, choice) {
            walk(node, choice, schema, found);
        }
    }
    match &node.content {
        Content::List(items) if described["items"].is_object() => {
            for item in items {
                walk(item, &described["items"], schema, found);
            }
        }
        Content::Map(entries) if described["additionalProperties"].is_object() => {
            for (_, value) in entries {
                walk(value, &described["additionalProperties"], schema, found);
            }
        }
        _ => {}
    }
}

/// Whether a choice is for this kind of node. No two choices of one kind stand beside each other.
fn fits(node: &Node, choice: &Value) -> bool {
    match node.content {
        Content::Map(_) => {
            choice["$ref"].is_string() || choice["additionalProperties"].is_object() || choice["anyOf"].is_array()
        }
        Content::List(_) => choice["items"].is_object(),
        Content::Scalar(_) | Content::Nothing => false,
    }
}
