//! Routes of several lists in the order of the file.

use smallvec::SmallVec;

use crate::route::RouteId;

/// The routes of all lists, each once and in order.
#[derive(Debug, Default)]
pub(in crate::route) struct Candidates<'t> {
    /// What is left of each list. They are ascending, never copied, and as few as places that hold one path.
    lists: SmallVec<[&'t [RouteId]; 16]>,
    /// What is left of all others, the last one first.
    others: SmallVec<[RouteId; 16]>,
}

impl<'t> Candidates<'t> {
    pub(super) fn add(&mut self, list: &'t [RouteId]) {
        if !list.is_empty() {
            self.lists.push(list);
        }
    }

    /// Adds one of any number of lists.
    pub(super) fn add_each(&mut self, list: &[RouteId]) {
        self.others.extend_from_slice(list);
    }

    /// To be called once all are there.
    pub(super) fn sorted(mut self) -> Self {
        self.others.sort_unstable_by_key(|id| std::cmp::Reverse(*id));
        self
    }
}

impl Iterator for Candidates<'_> {
    type Item = RouteId;

    fn next(&mut self) -> Option<RouteId> {
        let lists = self.lists.iter().filter_map(|list| list.first());
        let first = lists.chain(self.others.last()).min().copied()?;
        for list in &mut self.lists {
            // One list may have a route twice, and so may two of them.
            while let [id, rest @ ..] = list
                && *id == first
            {
                *list = rest;
            }
        }
        while self.others.last() == Some(&first) {
            self.others.pop();
        }
        Some(first)
    }
}
