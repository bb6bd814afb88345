//! The entries of a map while it is read, with those that `<<` brings.

use std::collections::HashMap;
use std::collections::HashSet;

use super::node::Content;
use super::node::MapKey;
use super::node::Node;
use crate::config::mistakes::Mistakes;
use crate::config::source::SourceRange;

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

    /// Takes over what `<<` names: a map, or a list of maps, the first of which count most.
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

/// The key of YAML 1.1 whose value is taken over into its map.
pub(super) const MERGE_KEY: &str = "<<";
