//! The routes that a request may take by its host and its path.

use super::candidates::Candidates;
use super::places::Places;
use crate::request::RequestHead;
use crate::route::Case;
use crate::route::Route;
use crate::route::RouteId;
use crate::route::pattern::Segment;
use crate::route::pattern::Shape;

/// Routes by host and path. It may yield a route that a request does not take, but never lacks one that it takes.
#[derive(Clone, Debug)]
pub(in crate::route) struct RequestIndex {
    places: Places,
    /// Whether any route compares with case.
    has_cased: bool,
}

impl RequestIndex {
    pub(in crate::route) fn new(routes: &[Route]) -> Self {
        let mut index = Self { places: Places::default(), has_cased: false };
        for (id, route) in (0..).map(RouteId).zip(routes) {
            let host = route.condition.host.as_ref();
            let Some(path) = &route.condition.path else {
                // A regular expression may match any path.
                index.places.insert(host, Case::Ignored, &[], true, id);
                continue;
            };
            index.has_cased |= path.case() == Case::Sensitive;
            for shape in path.shapes() {
                let (segments, is_open) = segments_of(shape);
                index.places.insert(host, path.case(), &segments, is_open, id);
            }
        }
        index
    }

    /// The routes that may match; `None`: any of them, because the path may be read as any path.
    pub(in crate::route) fn candidates(&self, head: &RequestHead<'_>) -> Option<Candidates<'_>> {
        if head.path.may_be_any() {
            return None;
        }
        let mut found = Candidates::default();
        for reading in std::iter::once(head.path.canonical()).chain(head.path.readings()) {
            for case in [Case::Ignored, Case::Sensitive].into_iter().take(1 + usize::from(self.has_cased)) {
                let path = segments(case.of(reading));
                self.places.find_at(head.host.as_str(), case, &path, &mut found);
            }
        }
        Some(found)
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
