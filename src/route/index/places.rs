//! Routes by their host, how they compare a path, and its segments.

use super::candidates::Candidates;
use super::hosts::Hosts;
use super::segments::SegmentTree;
use crate::route::Case;
use crate::route::HostPattern;
use crate::route::RouteId;

/// Where routes stand.
#[derive(Clone, Debug, Default)]
pub(in crate::route) struct Places(Hosts<Trees>);

/// The routes of one host.
#[derive(Clone, Debug, Default)]
struct Trees {
    folded: SegmentTree,
    cased: SegmentTree,
}

impl Places {
    /// Adds a route, whose id is larger than those before.
    pub(in crate::route) fn insert(
        &mut self,
        host: Option<&HostPattern>,
        case: Case,
        segments: &[Option<&str>],
        is_open: bool,
        id: RouteId,
    ) {
        self.0.of_mut(host).of_mut(case).insert(segments, is_open, id);
    }

    /// Adds the routes for one host and a path.
    pub(super) fn find_at<'t, 's>(
        &'t self,
        host: &str,
        case: Case,
        path: &(impl Clone + Iterator<Item = &'s str>),
        found: &mut Candidates<'t>,
    ) {
        for trees in self.0.of(host) {
            trees.of(case).find(path.clone().map(Some), false, found);
        }
    }

    /// Adds the routes for every host and every path of these patterns.
    pub(in crate::route) fn find_including<'t>(
        &'t self,
        host: Option<&HostPattern>,
        case: Case,
        segments: &[Option<&str>],
        is_open: bool,
        found: &mut Candidates<'t>,
    ) {
        for trees in self.0.including(host) {
            trees.of(case).find(segments.iter().copied(), is_open, found);
        }
    }
}

impl Trees {
    fn of(&self, case: Case) -> &SegmentTree {
        match case {
            Case::Ignored => &self.folded,
            Case::Sensitive => &self.cased,
        }
    }

    fn of_mut(&mut self, case: Case) -> &mut SegmentTree {
        match case {
            Case::Ignored => &mut self.folded,
            Case::Sensitive => &mut self.cased,
        }
    }
}
