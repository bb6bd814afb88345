//! Routes by their host, how they compare a path, and its segments.

use hashbrown::HashMap;

use super::candidates::Candidates;
use super::segments::SegmentTree;
use crate::route::Case;
use crate::route::HostPattern;
use crate::route::RouteId;

/// Where routes stand.
#[derive(Clone, Debug, Default)]
pub(in crate::route) struct Places {
    exact: HashMap<Box<str>, Trees>,
    /// By the domain of `*.domain`.
    below: HashMap<Box<str>, Trees>,
    any: Trees,
    /// The most dots in a domain of `below`: longer domains of a host are not looked up.
    most_dots: Option<usize>,
}

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
        let trees = match host {
            None => &mut self.any,
            Some(HostPattern::Exact(host)) => self.exact.entry(host.clone()).or_default(),
            Some(HostPattern::Below(domain)) => {
                self.most_dots = self.most_dots.max(Some(domain.matches('.').count()));
                self.below.entry(domain.clone()).or_default()
            }
        };
        trees.of_mut(case).insert(segments, is_open, id);
    }

    /// Adds the routes for one host and a path.
    pub(in crate::route) fn find_at<'t, 's>(
        &'t self,
        host: &str,
        case: Case,
        path: &(impl Clone + Iterator<Item = &'s str>),
        found: &mut Candidates<'t>,
    ) {
        let trees = self.exact.get(host).into_iter().chain(self.above(host)).chain([&self.any]);
        for trees in trees {
            trees.of(case).find(path.clone(), found);
        }
    }

    /// The routes of each domain that a host is below.
    fn above<'t>(&'t self, host: &str) -> impl Iterator<Item = &'t Trees> {
        // From the right, so that a host of many labels costs no more than the longest domain that is known.
        let looked_up = self.most_dots.map_or(0, |dots| dots + 1);
        let domains = host.rmatch_indices('.').take(looked_up).map(|(dot, _)| &host[dot + 1..]);
        domains.filter_map(|domain| self.below.get(domain))
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
