//! Routes of several lists in the order of the file.

use smallvec::SmallVec;

use crate::route::RouteId;

/// The routes of all lists, each once and in order. Lists are ascending and never copied.
#[derive(Debug, Default)]
pub(in crate::route) struct Candidates<'t> {
    /// What is left of each list.
    lists: SmallVec<[&'t [RouteId]; 16]>,
}

impl<'t> Candidates<'t> {
    pub(super) fn add(&mut self, list: &'t [RouteId]) {
        if !list.is_empty() {
            self.lists.push(list);
        }
    }
}

impl Iterator for Candidates<'_> {
    type Item = RouteId;

    fn next(&mut self) -> Option<RouteId> {
        let first = self.lists.iter().filter_map(|list| list.first()).min().copied()?;
        for list in &mut self.lists {
            // One list may have a route twice, and so may two of them.
            while let [id, rest @ ..] = list
                && *id == first
            {
                *list = rest;
            }
        }
        Some(first)
    }
}
