//! One host for every spelling of it.

use std::borrow::Cow;

/// A host in lower case, without port or final dot. An IPv6 address keeps its brackets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CanonicalHost<'r>(Cow<'r, str>);

impl<'r> CanonicalHost<'r> {
    pub fn new(_authority: &'r str) -> Self {
        todo!()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}
