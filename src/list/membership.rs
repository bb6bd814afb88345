//! How a request stands to a list.

use serde::Serialize;

/// Which values of a request are in a list. A request has several values when it repeats a header or a field.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Membership {
    /// No value is in the list, or the request has none.
    None,
    /// Some values are in the list, others are not.
    Some,
    /// All values are in the list, and there is at least one.
    All,
}
