//! Finds the routes that a request may take without comparing it with every route.

mod places;

use smallvec::SmallVec;

pub(super) use self::places::Places;
use crate::rules::request::CanonicalHead;
use crate::rules::route::index::places::{Hosts, TextCounts, TextIndex, Texts};
use crate::rules::route::pattern::{Segment, Shape};
use crate::rules::route::{Case, Route, RouteId};

// The routes that a request may take by its host and its path.

/// Routes by host and path. It may yield a route that a request does not take, but never lacks one that it takes.
#[derive(Clone, Debug)]
pub(in crate::rules::route) struct RequestIndex {
    places: Places,
    /// The texts of expressions that ignore case.
    folded_texts: Option<TextIndex>,
    cased_texts: Option<TextIndex>,
    /// Every route.
    hosts: Hosts<Vec<RouteId>>,
    /// Whether any route compares with case.
    has_cased: bool,
}

impl RequestIndex {
    pub(in crate::rules::route) fn new(routes: &[Route]) -> Self {
        let (mut places, mut hosts) = (Places::default(), Hosts::<Vec<RouteId>>::default());
        let mut has_cased = false;
        let counts = TextCounts::of(routes.iter().map(|route| &route.condition));
        let (mut folded_texts, mut cased_texts) = (Texts::default(), Texts::default());
        for (id, Route { condition, .. }) in (0..).map(RouteId).zip(routes) {
            let host = condition.host.as_ref();
            hosts.of_mut(host).push(id);
            let texts = condition.path_regex.as_ref().and_then(|regex| Some((regex.case(), counts.rarest(regex)?)));
            match (&condition.path, texts) {
                (Some(path), _) => {
                    has_cased |= path.case() == Case::Sensitive;
                    for shape in path.shapes() {
                        let (segments, is_open) = segments_of(shape);
                        places.insert(host, path.case(), &segments, is_open, id);
                    }
                }
                (None, Some((Case::Ignored, texts))) => folded_texts.insert(host, texts, id),
                (None, Some((Case::Sensitive, texts))) => {
                    has_cased = true;
                    cased_texts.insert(host, texts, id);
                }
                // It may match any path.
                (None, None) => places.insert(host, Case::Ignored, &[], true, id),
            }
        }
        Self { places, folded_texts: folded_texts.index(), cased_texts: cased_texts.index(), hosts, has_cased }
    }

    /// The routes that may match.
    pub(in crate::rules::route) fn candidates(&self, head: &CanonicalHead<'_>) -> Candidates<'_> {
        let mut found = Candidates::default();
        let host = head.host.as_str();
        if head.path.may_be_any() {
            for routes in self.hosts.of(host) {
                found.add(routes);
            }
            return found;
        }
        for reading in std::iter::once(head.path.canonical()).chain(head.path.readings()) {
            for case in [Case::Ignored, Case::Sensitive].into_iter().take(1 + usize::from(self.has_cased)) {
                let path = case.of(reading);
                self.places.find_at(host, case, &segments(path), &mut found);
                if let Some(texts) = self.texts(case) {
                    texts.find(host, path, &mut found);
                }
            }
        }
        found.sorted()
    }

    fn texts(&self, case: Case) -> Option<&TextIndex> {
        match case {
            Case::Ignored => self.folded_texts.as_ref(),
            Case::Sensitive => self.cased_texts.as_ref(),
        }
    }
}

/// The segments of a pattern, `None` for any, and whether more may follow.
fn segments_of(shape: &Shape) -> (Vec<Option<&str>>, bool) {
    match shape {
        Shape::Exact(path) => (segments(path).map(Some).collect(), false),
        Shape::Prefix(path) => (segments(path).map(Some).collect(), true),
        Shape::Segments { segments, open } => {
            let segments = segments.iter().map(|segment| match segment {
                Segment::Literal(literal) => Some(&**literal),
                Segment::Named(_) => None,
            });
            (segments.collect(), *open)
        }
    }
}

/// The segments of a path or of a prefix. The root is one empty segment, and the empty prefix has none.
fn segments(path: &str) -> impl Clone + Iterator<Item = &str> {
    path.strip_prefix('/').into_iter().flat_map(|rest| rest.split('/'))
}

// Routes of several lists in the order of the file.

/// The routes of all lists, each once and in order.
#[derive(Debug, Default)]
pub(in crate::rules::route) struct Candidates<'t> {
    /// The rest of each list. The lists are ascending, never copied, and few: one for each place that includes the
    /// path.
    lists: SmallVec<[&'t [RouteId]; 16]>,
    /// The rest of all others, the last one first.
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
