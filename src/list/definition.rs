//! A list of the configuration.

use std::sync::Arc;

use super::AddressSet;
use super::ValueSet;

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
