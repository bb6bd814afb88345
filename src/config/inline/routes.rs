//! Routes out of the scopes of all `--limit` flags.

use super::limit_flag::LimitFlag;
use super::nodes::map;
use super::nodes::scalar;
use super::request_set::RequestSet;
use crate::config::mistakes::Mistakes;
use crate::config::source::SourceRange;
use crate::config::yaml::Content;
use crate::config::yaml::Node;

/// A route for every set of requests and for every overlap of several, the narrowest first, each with every limit that
/// applies there. The first match therefore has all limits of a request.
pub(super) fn routes(limits: &[LimitFlag], mistakes: &mut Mistakes) -> Vec<Node> {
    let mut sets: Vec<(RequestSet, SourceRange)> = Vec::new();
    let mut open: Vec<(RequestSet, SourceRange)> = limits
        .iter()
        .flat_map(|limit| limit.scope.request_sets().into_iter().map(|set| (set, limit.scope.at)))
        .collect();
    open.reverse();
    while let Some((set, at)) = open.pop() {
        if sets.iter().any(|(known, _)| known.is_same(&set)) {
            continue;
        }
        if sets.len() == MAX_ROUTES {
            let message = format!("these limits overlap in more than {MAX_ROUTES} ways");
            mistakes.report(at, message, "write them into a file: `portcullis run -c portcullis.yaml`");
            return Vec::new();
        }
        open.extend(sets.iter().filter_map(|(known, _)| set.intersection(known)).map(|both| (both, at)));
        sets.push((set, at));
    }
    // A set within another one is also within all that contain that one.
    sets.sort_by_cached_key(|(set, _)| {
        let containing =
            limits.iter().flat_map(|limit| limit.scope.request_sets()).filter(|other| set.is_within(other)).count();
        std::cmp::Reverse((containing, set.segments.len(), !set.open))
    });
    let route = |(set, at): &(RequestSet, SourceRange)| {
        let holds = |limit: &&LimitFlag| limit.scope.request_sets().iter().any(|other| set.is_within(other));
        let nodes = limits.iter().filter(holds).map(|limit| limit.node.clone()).collect();
        map(*at, vec![("match", scalar(*at, set.text())), ("limits", Node { at: *at, content: Content::List(nodes) })])
    };
    sets.iter().map(route).collect()
}

/// More overlaps than this are for a file.
const MAX_ROUTES: usize = 300;
