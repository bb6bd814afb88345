//! YAML text as a tree in which every part knows its place. Nothing is typed yet: the key decides whether `429` is a
//! number.

mod parse;

use std::collections::{HashMap, HashSet};

pub use self::parse::{parse, parse_foreign};
use crate::config::diagnostic::Mistakes;
use crate::config::load::advice_of_directive;
use crate::config::source::SourceRange;

/// The key of YAML 1.1 whose value is taken over into its map.
pub(super) const MERGE_KEY: &str = "<<";

/// The entries of a map that is not closed yet.
#[derive(Debug, Default)]
pub(super) struct MapEntries {
    entries: Vec<(MapKey, Node)>,
    /// The keys that stand in the map itself.
    written: HashMap<String, SourceRange>,
    /// The keys that a merge has brought, which the map itself may write anew.
    merged: HashSet<String>,
}

impl MapEntries {
    /// Begins an entry. Returns where the same key stands already.
    pub(super) fn begin(&mut self, key: &str, at: SourceRange) -> Option<SourceRange> {
        if let Some(first) = self.written.get(key) {
            return Some(*first);
        }
        self.written.insert(key.to_owned(), at);
        if self.merged.remove(key) {
            self.entries.retain(|(known, _)| known.text != key);
        }
        None
    }

    pub(super) fn push(&mut self, key: MapKey, value: Node) {
        self.entries.push((key, value));
    }

    /// Merges the value of `<<`: a map, or a list of maps, where earlier maps win.
    pub(super) fn merge(&mut self, value: Node, mistakes: &mut Mistakes) {
        let (at, maps) = match value {
            Node { at, content: Content::List(items) } => (at, items),
            map => (map.at, vec![map]),
        };
        for map in maps {
            let Content::Map(entries) = map.content else {
                let message = format!("`<<` takes a map or a list of maps, found {}", map.kind());
                mistakes.report(at, message, "write the alias of a map: `<<: *name`");
                return;
            };
            for (key, value) in entries {
                if let Some(written) = self.written.get(&key.text) {
                    mistakes.report(
                        *written,
                        format!(
                            "`{}` stands before a `<<` that brings it too: programs differ about which one holds",
                            key.text
                        ),
                        "write `<<` as the first key of its map",
                    );
                } else if self.merged.insert(key.text.clone()) {
                    self.entries.push((key, value));
                }
            }
        }
    }

    pub(super) fn into_vec(self) -> Vec<(MapKey, Node)> {
        self.entries
    }
}

// The tree of a YAML text.

/// A part of the tree.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Node {
    pub at: SourceRange,
    pub content: Content,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Content {
    /// No value, `null` or `~`.
    Nothing,
    Scalar(String),
    List(Vec<Node>),
    /// In the order of the file. Each key is there once.
    Map(Vec<(MapKey, Node)>),
}

/// A key of a map.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MapKey {
    pub at: SourceRange,
    pub text: String,
}

impl Node {
    /// Whether it is a map with this key.
    pub fn has_key(&self, key: &str) -> bool {
        matches!(&self.content, Content::Map(entries) if entries.iter().any(|(name, _)| name.text == key))
    }

    /// The kind of the node, in the words of an error message.
    pub fn kind(&self) -> &'static str {
        match self.content {
            Content::Nothing => "nothing",
            Content::Scalar(_) => "a single value",
            Content::List(_) => "a list",
            Content::Map(_) => "a map",
        }
    }
}

// Helps for a text that is not YAML.

/// The last line up to this one, counted from 1, that begins with a directive of another program, as its number, its first
/// word, and what to write. `None`: there is none.
pub(super) fn directive(text: &str, last: usize) -> Option<(usize, &str, String)> {
    let lines = (1..).zip(text.lines()).take(last).collect::<Vec<_>>();
    lines.into_iter().rev().find_map(|(number, line)| {
        let line = line.trim();
        let (word, value) = line.split_once(char::is_whitespace)?;
        if !word.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
            return None;
        }
        let advice = advice_of_directive(word);
        let ends = line.strip_suffix(';').map(|_| value.trim().trim_end_matches(';').trim_end());
        let help = match (advice, ends) {
            (Some(advice), _) => advice.to_owned(),
            (None, Some(value)) => format!("write a colon behind the key, and no `;`: `{word}: {value}`"),
            (None, None) => return None,
        };
        Some((number, word, help))
    })
}

/// The help for a text that is not YAML.
pub(super) fn syntax_help(info: &str, line: &str) -> &'static str {
    let indentation = &line[..line.len() - line.trim_start().len()];
    let says = |words: &[&str]| words.iter().any(|word| info.contains(word));
    if indentation.contains('\t') {
        "indent with spaces: YAML allows no tabs there"
    } else if line.contains("[::") && !line.contains("\"[::") {
        "write an IPv6 address in quotes: `\"[::]:8080\"`"
    } else if says(&["quote"]) {
        "close the text with the quote that it begins with"
    } else if says(&["anchor", "alias"]) {
        "write a text that begins with `*` or `&` in quotes; an alias `*name` needs its `&name` before it"
    } else if says(&["mapping values are not allowed", "simple key"]) {
        "write a value that contains `: ` in quotes; begin the keys of one map in the same column"
    } else if says(&["flow"]) && (line.contains("${") || line.contains("/{")) {
        "inside `{ }` and `[ ]` write a text that contains a `{` in quotes: `\"/users/{id}\"`, `\"${NAME}\"`"
    } else if says(&["flow", "bracket", "illegal placement"]) {
        "close every `[` with `]` and every `{` with `}`, and put `,` between entries"
    } else if says(&["block", "indentation"]) {
        "begin the keys of one map, and the dashes of one list, in the same column"
    } else if says(&["unexpected character"]) {
        "write a text that begins with `%`, `@` or a backtick in quotes"
    } else {
        "look for a quote or bracket that is not closed, and for a line that begins in another column than its neighbours"
    }
}

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz {
    //! The fuzz target of this parser.

    use std::path::Path;

    use super::{Content, Node, parse, parse_foreign};
    use crate::config::diagnostic::Mistakes;
    use crate::config::raw::{Document, RawValue};
    use crate::config::source::SourceText;
    use crate::config::yaml::parse::{MAX_DEPTH, MAX_NODES};
    #[cfg(test)]
    use crate::words::corpus;

    /// A text becomes a bounded tree, or a mistake that can be shown. No file that the text names is opened.
    pub fn check(bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let mut mistakes = Mistakes::default();
        let number = mistakes.source(SourceText::new(Path::new("fuzz.yaml"), text.clone()));
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
}

#[cfg(test)]
mod tests;
