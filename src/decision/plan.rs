//! The second step: the keys a request is counted under, as one batch for a store.

use super::Batch;
use super::Entry;
use crate::request::Fields;

/// What is to be decided, once the fields are known.
#[derive(Debug)]
pub struct Plan<'a> {
    batch: Batch<'a>,
}

impl<'a> Entry<'a> {
    /// Extracts every key and settles which charges the store is asked for.
    pub fn plan(self, _fields: &Fields) -> Plan<'a> {
        todo!()
    }
}

impl<'a> Plan<'a> {
    /// What the store is to decide; without charges there is nothing to ask it.
    pub fn batch(&self) -> &Batch<'a> {
        &self.batch
    }
}
