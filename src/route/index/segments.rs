//! A tree of path segments. Each node has the routes whose pattern ends there.

use hashbrown::HashMap;

use super::candidates::Candidates;
use crate::route::RouteId;

/// The routes with one beginning of their paths, and those whose paths go on.
#[derive(Clone, Debug, Default)]
pub(super) struct SegmentTree {
    literal: HashMap<Box<str>, SegmentTree>,
    /// Below a segment that may be any.
    any: Option<Box<SegmentTree>>,
    /// For this path and those below it.
    open: Vec<RouteId>,
    /// For this path alone.
    whole: Vec<RouteId>,
}

/// Deeper patterns are found by their first segments. It bounds the depth of the tree, and how many ways through it a path has.
const MAX_DEPTH: usize = 8;

impl SegmentTree {
    /// Adds a route, whose id is larger than those before. A segment that is `None` may be any.
    pub(super) fn insert(&mut self, segments: &[Option<&str>], is_open: bool, id: RouteId) {
        let mut node = self;
        for segment in segments.iter().take(MAX_DEPTH) {
            node = match segment {
                Some(literal) => node.literal.entry((*literal).into()).or_default(),
                None => node.any.get_or_insert_default(),
            };
        }
        let is_cut = segments.len() > MAX_DEPTH;
        let routes = if is_open || is_cut { &mut node.open } else { &mut node.whole };
        routes.push(id);
    }

    /// Adds the routes whose pattern holds every path of these segments, of which `None` is any; `is_open`: and what is below.
    pub(super) fn find<'t, 's>(
        &'t self,
        mut path: impl Clone + Iterator<Item = Option<&'s str>>,
        is_open: bool,
        found: &mut Candidates<'t>,
    ) {
        found.add(&self.open);
        let Some(segment) = path.next() else {
            if !is_open {
                found.add(&self.whole);
            }
            return;
        };
        if let Some(below) = segment.and_then(|segment| self.literal.get(segment)) {
            below.find(path.clone(), is_open, found);
        }
        if let Some(below) = &self.any {
            below.find(path, is_open, found);
        }
    }
}
