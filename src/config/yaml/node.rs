//! The tree of a YAML text.

use crate::config::source::SourceRange;

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
    /// What it is, in the words of an error message.
    pub fn kind(&self) -> &'static str {
        match self.content {
            Content::Nothing => "nothing",
            Content::Scalar(_) => "a single value",
            Content::List(_) => "a list",
            Content::Map(_) => "a map",
        }
    }
}
