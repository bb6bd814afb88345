//! Routes by their host, how they compare a path, and its segments.

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::rules::route::index::Candidates;
use crate::rules::route::path_regex::AnyOf;
use crate::rules::route::{Case, Condition, HostPattern, PathRegex, RouteId};

/// Where routes stand.
#[derive(Clone, Debug, Default)]
pub(in crate::rules::route) struct Places(Hosts<Trees>);

/// The routes of one host.
#[derive(Clone, Debug, Default)]
struct Trees {
    folded: SegmentTree,
    cased: SegmentTree,
}

impl Places {
    /// Adds a route. Its id is larger than all earlier ids.
    pub(in crate::rules::route) fn insert(
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
    pub(in crate::rules::route) fn find_including<'t>(
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

// A tree of path segments. Each node has the routes whose pattern ends there.

/// Deeper patterns are found by their first segments. It bounds the depth of the tree, and how many ways through it a path has.
const MAX_DEPTH: usize = 8;

/// Routes by the segments of their paths: a node for each beginning of a path.
#[derive(Clone, Debug, Default)]
pub(super) struct SegmentTree {
    literal: HashMap<Box<str>, SegmentTree>,
    /// Below a segment that may be any.
    any: Option<Box<SegmentTree>>,
    /// For this path and all paths below it.
    open: Vec<RouteId>,
    /// For this path alone.
    whole: Vec<RouteId>,
}

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

    /// Adds the routes whose pattern includes every path of these segments. `None` is any segment; `is_open`: also the
    /// paths below.
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

// Values by the hosts that routes are for.

/// A value for each host, for each domain of `*.domain`, and for any host.
#[derive(Clone, Debug, Default)]
pub(super) struct Hosts<T> {
    exact: HashMap<Box<str>, T>,
    below: HashMap<Box<str>, T>,
    any: T,
    /// The most dots in a domain of `below`: longer domains of a host are not looked up.
    most_dots: Option<usize>,
}

impl<T: Default> Hosts<T> {
    pub(super) fn of_mut(&mut self, host: Option<&HostPattern>) -> &mut T {
        match host {
            None => &mut self.any,
            Some(HostPattern::Exact(host)) => self.exact.entry(host.clone()).or_default(),
            Some(HostPattern::Below(domain)) => {
                self.most_dots = self.most_dots.max(Some(domain.matches('.').count()));
                self.below.entry(domain.clone()).or_default()
            }
        }
    }

    /// The entries for a host.
    pub(super) fn of(&self, host: &str) -> impl Iterator<Item = &T> {
        self.exact.get(host).into_iter().chain(self.above(host)).chain([&self.any])
    }

    /// The entries for every host of a pattern.
    pub(super) fn including(&self, host: Option<&HostPattern>) -> impl Iterator<Item = &T> {
        let (same, name) = match host {
            None => (None, None),
            Some(HostPattern::Exact(host)) => (self.exact.get(host), Some(host)),
            Some(HostPattern::Below(domain)) => (self.below.get(domain), Some(domain)),
        };
        let above = name.into_iter().flat_map(|name| self.above(name));
        same.into_iter().chain(above).chain([&self.any])
    }

    /// The entries for each domain above a host.
    fn above<'t>(&'t self, host: &str) -> impl Iterator<Item = &'t T> {
        // From the right, so that a host of many labels costs no more than the longest domain that is known.
        let looked_up = self.most_dots.map_or(0, |dots| dots + 1);
        let domains = host.rmatch_indices('.').take(looked_up).map(|(dot, _)| &host[dot + 1..]);
        domains.filter_map(|domain| self.below.get(domain))
    }
}

// Routes with a regular expression, by a text that every path that it matches has.

/// Finds all texts in one walk over a path.
#[derive(Clone, Debug)]
pub(super) struct TextIndex {
    automaton: AhoCorasick,
    /// By the number of the text.
    routes: Vec<Hosts<Vec<RouteId>>>,
}

/// The content of the index before it is built.
#[derive(Debug, Default)]
pub(super) struct Texts<'r> {
    numbers: HashMap<&'r str, usize>,
    routes: Vec<Hosts<Vec<RouteId>>>,
}

/// How many expressions require a text.
#[derive(Debug, Default)]
pub(super) struct TextCounts<'r>(HashMap<&'r str, usize>);

impl<'r> TextCounts<'r> {
    pub(super) fn of(conditions: impl Iterator<Item = &'r Condition>) -> Self {
        let mut counts = HashMap::new();
        let expressions = conditions.filter_map(|condition| condition.path_regex.as_ref());
        for text in expressions.flat_map(PathRegex::required).flatten() {
            *counts.entry(&**text).or_default() += 1;
        }
        Self(counts)
    }

    /// The required texts of an expression that the fewest other expressions require; if equal, the longest. `None`: it
    /// may match any path.
    pub(super) fn rarest(&self, expression: &'r PathRegex) -> Option<&'r AnyOf> {
        let count = |texts: &AnyOf| texts.iter().map(|text| self.0[&**text]).sum::<usize>();
        let shortest = |texts: &AnyOf| texts.iter().map(|text| text.len()).min();
        expression.required().iter().min_by_key(|texts| (count(texts), std::cmp::Reverse(shortest(texts))))
    }
}

impl<'r> Texts<'r> {
    /// Adds a route. Its id is larger than all earlier ids.
    pub(super) fn insert(&mut self, host: Option<&HostPattern>, texts: &'r AnyOf, id: RouteId) {
        for text in texts {
            let next = self.numbers.len();
            let number = *self.numbers.entry(text).or_insert(next);
            if number == next {
                self.routes.push(Hosts::default());
            }
            self.routes[number].of_mut(host).push(id);
        }
    }

    /// `None`: there are no texts.
    pub(super) fn index(self) -> Option<TextIndex> {
        if self.routes.is_empty() {
            return None;
        }
        let mut texts: Vec<(&str, usize)> = self.numbers.into_iter().collect();
        texts.sort_unstable_by_key(|(_, number)| *number);
        let texts = texts.into_iter().map(|(text, _)| text);
        // All other kinds take a table of all letters for each state.
        let automaton = AhoCorasick::builder().kind(Some(AhoCorasickKind::ContiguousNFA)).build(texts);
        // A configuration bounds how much all expressions take, texts included.
        Some(TextIndex { automaton: automaton.expect("fewer letters than states"), routes: self.routes })
    }
}

impl TextIndex {
    /// Adds the routes for one host that have a required text in the path.
    pub(super) fn find(&self, host: &str, path: &str, found: &mut Candidates<'_>) {
        let texts = self.automaton.find_overlapping_iter(path).map(|text| text.pattern().as_usize());
        let mut texts: SmallVec<[usize; 8]> = texts.collect();
        // A path may repeat a text as often as it has room.
        texts.sort_unstable();
        texts.dedup();
        for routes in texts.into_iter().flat_map(|text| self.routes[text].of(host)) {
            found.add_each(routes);
        }
    }
}
