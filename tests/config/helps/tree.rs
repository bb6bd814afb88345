//! A configuration as a tree that can be changed and written again.

use std::path::Path;

use portcullis::config::diagnostic::Mistakes;
use portcullis::config::source::{SourceRange, SourceText};
use portcullis::config::yaml;
use portcullis::config::yaml::{Content, Node};

use super::super::environment;
use super::proposals::Change;

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Tree {
    Nothing,
    Scalar(String),
    List(Vec<Tree>),
    Map(Vec<(String, Tree)>),
}

/// A step down the tree.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Step {
    Key(String),
    Item(usize),
}

pub(super) type TreePath = Vec<Step>;

/// What stands at a place of the text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Place {
    Key(TreePath),
    Value(TreePath),
}

/// A text as a tree, and where each part of it stands.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) tree: Tree,
    pub(super) places: Vec<(u32, u32, Place)>,
}

impl Parsed {
    /// `None`: the text is no YAML.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut mistakes = Mistakes::default();
        let source = mistakes.source(SourceText::new(Path::new("text"), text.to_owned()));
        let root = yaml::parse(text, source, &environment, &mut mistakes)?;
        let mut places = Vec::new();
        let tree = read_node(&root, &[], &mut places);
        Some(Self { tree, places })
    }

    /// What may be meant by a place: a map that is not in braces begins where its first key does.
    pub(super) fn at(&self, line: usize, column: usize) -> Vec<Place> {
        let is_there = |(at_line, at_column): (u32, u32)| (at_line as usize, at_column as usize) == (line, column);
        let found = self.places.iter().filter(|(line, column, _)| is_there((*line, *column)));
        found.map(|(.., place)| place.clone()).collect()
    }
}

fn read_node(node: &Node, path: &[Step], places: &mut Vec<(u32, u32, Place)>) -> Tree {
    let SourceRange { line, column, .. } = node.at;
    places.push((line, column, Place::Value(path.to_vec())));
    match &node.content {
        Content::Nothing => Tree::Nothing,
        Content::Scalar(text) => Tree::Scalar(text.clone()),
        Content::List(items) => {
            let item = |(at, item)| read_node(item, &[path, &[Step::Item(at)]].concat(), places);
            Tree::List(items.iter().enumerate().map(item).collect())
        }
        Content::Map(entries) => {
            let mut tree = Vec::new();
            for (key, value) in entries {
                let path = [path, &[Step::Key(key.text.clone())]].concat();
                places.push((key.at.line, key.at.column, Place::Key(path.clone())));
                tree.push((key.text.clone(), read_node(value, &path, places)));
            }
            Tree::Map(tree)
        }
    }
}

impl Tree {
    /// As a text in the form of JSON, which is YAML too. Variables that could not be read stay what they are.
    pub(super) fn write(&self) -> String {
        match self {
            Self::Nothing => "null".to_owned(),
            Self::Scalar(text) => serde_json::Value::from(text.as_str()).to_string(),
            Self::List(items) => format!("[{}]", items.iter().map(Self::write).collect::<Vec<_>>().join(", ")),
            Self::Map(entries) => {
                // Each on a line of its own, as people write the sections of a file.
                let entry = |(key, value): &(String, Self)| {
                    format!("{}: {}", serde_json::Value::from(key.as_str()), value.write())
                };
                format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(",\n"))
            }
        }
    }

    pub(super) fn get(&self, path: &[Step]) -> Option<&Self> {
        let Some((first, rest)) = path.split_first() else { return Some(self) };
        match (self, first) {
            (Self::Map(entries), Step::Key(key)) => entries.iter().find(|(known, _)| known == key)?.1.get(rest),
            (Self::List(items), Step::Item(at)) => items.get(*at)?.get(rest),
            _ => None,
        }
    }

    pub(super) fn get_mut(&mut self, path: &[Step]) -> Option<&mut Self> {
        let Some((first, rest)) = path.split_first() else { return Some(self) };
        match (self, first) {
            (Self::Map(entries), Step::Key(key)) => entries.iter_mut().find(|(known, _)| known == key)?.1.get_mut(rest),
            (Self::List(items), Step::Item(at)) => items.get_mut(*at)?.get_mut(rest),
            _ => None,
        }
    }

    /// Without the entry or the item at a path.
    pub(super) fn without(&self, path: &[Step]) -> Option<Self> {
        let mut tree = self.clone();
        let (last, parent) = path.split_last()?;
        match (tree.get_mut(parent)?, last) {
            (Self::Map(entries), Step::Key(key)) => entries.retain(|(known, _)| known != key),
            (Self::List(items), Step::Item(at)) => drop(items.remove(*at)),
            _ => return None,
        }
        Some(tree)
    }

    /// With another value at a path.
    pub(super) fn with(&self, path: &[Step], value: Self) -> Option<Self> {
        let mut tree = self.clone();
        *tree.get_mut(path)? = value;
        Some(tree)
    }

    /// With another name of the key at a path.
    pub(super) fn renamed(&self, path: &[Step], name: &str) -> Option<Self> {
        let mut tree = self.clone();
        let (Step::Key(key), parent) = path.split_last()? else { return None };
        let Self::Map(entries) = tree.get_mut(parent)? else { return None };
        let (known, _) = entries.iter_mut().find(|(known, _)| known == key)?;
        name.clone_into(known);
        Some(tree)
    }

    /// With these entries in the map at a path, beside what it has.
    pub(super) fn with_entries(&self, path: &[Step], entries: &[(String, Self)]) -> Option<Self> {
        let mut tree = self.clone();
        let map = tree.get_mut(path)?;
        matches!(map, Self::Map(_)).then(|| map.merge(&Self::Map(entries.to_vec())))?;
        Some(tree)
    }

    /// With one more item in the list at the top that has this name.
    pub(super) fn with_item(&self, name: &str, item: Self) -> Option<Self> {
        let mut tree = self.clone();
        let Self::Map(entries) = &mut tree else { return None };
        match entries.iter_mut().find(|(known, _)| known == name) {
            Some((_, Self::List(items))) => items.push(item),
            Some(_) => return None,
            None => entries.push((name.to_owned(), Self::List(vec![item]))),
        }
        Some(tree)
    }

    /// What becomes of a value that is changed so.
    pub(super) fn changed(&self, change: Change) -> Option<Self> {
        let Self::Scalar(text) = self else {
            return (change == Change::MakeList).then(|| Self::List(self.items()));
        };
        let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
        match (change, rest.rsplit_once('@')) {
            (Change::MakeList, _) => Some(Self::List(self.items())),
            (Change::RemoveCredentials, Some((_, host))) => Some(Self::Scalar(format!("{scheme}://{host}"))),
            (Change::EncodePassword, Some((credentials, host))) => {
                let credentials = credentials.replace('#', "%23").replace('?', "%3F").replace('/', "%2F");
                Some(Self::Scalar(format!("{scheme}://{credentials}@{host}")))
            }
            (Change::EncodePassword, None) => {
                let url = text.find(['#', '?']).map_or(text.as_str(), |end| &text[..end]);
                Some(Self::Scalar(url.to_owned()))
            }
            (Change::RemoveCredentials, None) => None,
        }
    }

    /// What becomes of a value that dashes are put before: each entry of a map of maps is one.
    fn items(&self) -> Vec<Self> {
        match self {
            Self::Map(entries) if entries.iter().all(|(_, value)| matches!(value, Self::Map(_))) => {
                entries.iter().map(|(_, value)| value.clone()).collect()
            }
            _ => vec![self.clone()],
        }
    }

    /// Takes over what another one has: maps are joined, everything else is replaced.
    fn merge(&mut self, other: &Self) {
        let (Self::Map(entries), Self::Map(others)) = (&mut *self, other) else {
            *self = other.clone();
            return;
        };
        for (key, value) in others {
            match entries.iter_mut().find(|(known, _)| known == key) {
                Some((_, known)) => known.merge(value),
                None => entries.push((key.clone(), value.clone())),
            }
        }
    }
}
