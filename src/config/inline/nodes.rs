//! Parts of a document that is made from flags.

use crate::config::mistakes::Mistakes;
use crate::config::source::Source;
use crate::config::source::SourceRange;
use crate::config::yaml::Content;
use crate::config::yaml::MapKey;
use crate::config::yaml::Node;

pub(super) fn flag(name: &str, text: &str, mistakes: &mut Mistakes) -> Node {
    let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    let source = mistakes.source(Source::new(name, text.to_owned()));
    scalar(SourceRange { source, line: 1, column: 1, length }, text.to_owned())
}

pub(super) fn scalar(at: SourceRange, text: String) -> Node {
    Node { at, content: Content::Scalar(text) }
}

pub(super) fn map(at: SourceRange, entries: Vec<(&str, Node)>) -> Node {
    let named = entries.into_iter().map(|(name, node)| (MapKey { at: node.at, text: name.to_owned() }, node));
    Node { at, content: Content::Map(named.collect()) }
}
