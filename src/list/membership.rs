//! How a request stands to a list.

use serde::Serialize;

/// How a request stands to a list. It may present several values, when it repeats a header or a field.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Membership {
    /// No value it presents is in the list, or it presents none.
    None,
    /// Some are, others are not.
    Some,
    /// Every one is, and there is one.
    All,
}
