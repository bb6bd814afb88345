//! The fuzz target of this parser.

use std::path::Path;

use super::Content;
use super::Node;
use super::parse;
use super::parse::MAX_DEPTH;
use super::parse::MAX_NODES;
use super::parse_foreign;
use crate::config::mistakes::Mistakes;
use crate::config::raw::Document;
use crate::config::raw::RawValue;
use crate::config::source::Source;
#[cfg(test)]
use crate::corpus;

/// A text becomes a bounded tree, or a mistake that can be shown. No file that the text names is opened.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let mut mistakes = Mistakes::default();
    let number = mistakes.source(Source::new(Path::new("fuzz.yaml"), text.clone()));
    let root = parse(&text, number, &|name| (name == "PORT").then(|| "8080".to_owned()), &mut mistakes);
    if let Some(root) = &root {
        let (nodes, depth) = size(root);
        assert!(nodes <= MAX_NODES && depth <= MAX_DEPTH + 1, "{nodes} nodes, {depth} deep");
        let _ = Document::read(root, &mut mistakes);
    }
    for document in parse_foreign(&text, number, &|_| None, &mut mistakes) {
        let (nodes, depth) = size(&document);
        assert!(nodes <= MAX_NODES && depth <= MAX_DEPTH + 1, "{nodes} nodes, {depth} deep");
    }
    for mistake in mistakes.into_sorted() {
        assert!(mistake.line >= 1 && mistake.column >= 1 && !mistake.message.is_empty(), "{mistake:?}");
        let _ = crate::config::render(&[mistake], false);
    }
}

/// How many nodes a tree has, and how deep they stand in each other.
fn size(node: &Node) -> (usize, usize) {
    let below: Vec<(usize, usize)> = match &node.content {
        Content::Nothing | Content::Scalar(_) => Vec::new(),
        Content::List(items) => items.iter().map(size).collect(),
        Content::Map(entries) => entries.iter().map(|(_, node)| size(node)).collect(),
    };
    let deepest = below.iter().map(|(_, depth)| *depth).max().unwrap_or_default();
    (1 + below.iter().map(|(nodes, _)| nodes).sum::<usize>(), 1 + deepest)
}

#[cfg(test)]
#[test]
fn the_corpus_keeps_its_promises() {
    corpus::feed("yaml", check);
}
