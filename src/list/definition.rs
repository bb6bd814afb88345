//! A list of the configuration.

use std::sync::Arc;

use super::AddressSet;
use super::ValueSet;

/// The position of a list in the policy that holds it.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ListId(pub u16);

/// A named set of addresses or values.
#[derive(Clone, Debug)]
pub struct List {
    pub name: Arc<str>,
    pub members: Members,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Members {
    Addresses(AddressSet),
    /// Values of a selector. The selector is in the policy, beside the list, because lists know no keys.
    Values(ValueSet),
    /// Addresses that another system decides about meanwhile. The number of the list in the client's
    /// [`Reputation`](crate::client::Reputation).
    Followed(u8),
}
