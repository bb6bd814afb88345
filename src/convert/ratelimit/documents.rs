//! The configurations in a file: one, several after each other, or those within `ConfigMap`s of Kubernetes.

use std::path::Path;

use crate::config::mistakes::Mistakes;
use crate::config::source::Source;
use crate::config::source::SourceRange;
use crate::config::yaml;
use crate::config::yaml::Content;
use crate::config::yaml::MapKey;
use crate::config::yaml::Node;

/// The configurations in a file, each of which should describe a domain.
pub(super) fn documents(name: &Path, text: &str, mistakes: &mut Mistakes) -> Vec<Node> {
    let mut configurations = Vec::new();
    let mut has_plain_one = false;
    for document in parse(name, text, mistakes) {
        if kind(&document).is_some() {
            unwrap(name, document, &mut configurations, mistakes);
        } else {
            if has_plain_one {
                let help = "remove it if it shall not hold, or give it a file of its own";
                mistakes.warn(
                    document.at,
                    "the service reads the first document of a file alone: this one holds here",
                    help,
                );
            }
            configurations.push(document);
            has_plain_one = true;
        }
    }
    configurations
}

/// Takes the configurations out of an object of Kubernetes.
fn unwrap(name: &Path, object: Node, configurations: &mut Vec<Node>, mistakes: &mut Mistakes) {
    match kind(&object) {
        Some("ConfigMap") => {
            for (key, value) in entries(&object, "data") {
                configurations.extend(value_of_data(name, key, value, mistakes));
            }
        }
        Some("List") => {
            let Some(Content::List(items)) = get(&object, "items").map(|items| &items.content) else { return };
            for item in items {
                unwrap(name, item.clone(), configurations, mistakes);
            }
        }
        Some(kind) => {
            let help = "nothing of it decides about calls; what the service reads stands in a `ConfigMap`";
            mistakes.warn(object.at, format!("`{kind}` is left out: it holds no configuration of the service"), help);
        }
        None => configurations.push(object),
    }
}

/// The configurations in one value of a `ConfigMap`: it is a file of the service.
fn value_of_data(name: &Path, key: &MapKey, value: &Node, mistakes: &mut Mistakes) -> Vec<Node> {
    let Content::Scalar(text) = &value.content else {
        let help = format!("write its text behind `{}: |`, indented", key.text);
        mistakes.report(value.at, format!("`{}` is {}, and not the text of a file", key.text, value.kind()), help);
        return Vec::new();
    };
    let file = format!("{}[{}]", name.display(), key.text);
    let is_named_so = [".yaml", ".yml"].iter().any(|ending| key.text.ends_with(ending));
    if !is_named_so && !holds_map(text) {
        let help = "the service reads files of YAML alone";
        mistakes.warn(key.at, format!("`{}` of the `ConfigMap` is left out: it is no map", key.text), help);
        return Vec::new();
    }
    documents(Path::new(&file), text, mistakes)
}

/// Whether a text is YAML with a map in it.
fn holds_map(text: &str) -> bool {
    let documents = parse(Path::new(""), text, &mut Mistakes::default());
    documents.iter().any(|document| matches!(document.content, Content::Map(_)))
}

fn parse(name: &Path, text: &str, mistakes: &mut Mistakes) -> Vec<Node> {
    // `${` is no variable there.
    let text = text.replace("${", "$${");
    let before = mistakes.len();
    let source = mistakes.source(Source::new(name, text.clone()));
    let documents = yaml::parse_foreign(&text, source, &|_| None, mistakes);
    if documents.is_empty() && mistakes.len() == before {
        let at = SourceRange { source, line: 1, column: 1, length: 1 };
        mistakes.report(at, "the file is empty", "a file has `domain:` and `descriptors:`");
    }
    documents
}

/// What an object of Kubernetes is. `None`: it is none.
fn kind(node: &Node) -> Option<&str> {
    get(node, "apiVersion")?;
    match &get(node, "kind")?.content {
        Content::Scalar(kind) => Some(kind),
        _ => None,
    }
}

fn get<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    let Content::Map(entries) = &node.content else { return None };
    entries.iter().find(|(name, _)| name.text == key).map(|(_, value)| value)
}

fn entries<'n>(node: &'n Node, key: &str) -> &'n [(MapKey, Node)] {
    match get(node, key).map(|value| &value.content) {
        Some(Content::Map(entries)) => entries,
        _ => &[],
    }
}
