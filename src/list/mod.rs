//! Named sets that rules refer to: of addresses, or of any other value a selector yields.

pub mod addresses;
pub mod lines;
pub mod values;

use std::sync::Arc;

pub use self::addresses::AddressSet;
pub use self::addresses::InvalidNetwork;
pub use self::addresses::network;
pub use self::values::ValueSet;

/// The position of a list in the policy that holds it.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ListId(pub u16);

/// A named set. What it is a set of decides what a request is asked for.
#[derive(Clone, Debug)]
pub struct List {
    pub name: Arc<str>,
    pub members: Members,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Members {
    Addresses(AddressSet),
    /// Values of a selector; the selector stands beside the list in the policy, which knows keys.
    Values(ValueSet),
}

/// How a request stands to a list. It may present several values, when it repeats a header or a field.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Membership {
    /// No value it presents is in the list, or it presents none.
    None,
    /// Some are, others are not.
    Some,
    /// Every one is, and there is one.
    All,
}
