//! YAML text as a tree in which every part knows its place. Nothing is typed yet: the key decides whether `429` is a
//! number.

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod map_entries;
mod node;
mod parse;
mod syntax_help;

pub use self::node::Content;
pub use self::node::MapKey;
pub use self::node::Node;
pub use self::parse::parse;
pub use self::parse::parse_foreign;

#[cfg(test)]
mod tests;
