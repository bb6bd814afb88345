//! Routes out of the scopes of all `--limit` flags.

use super::limit_flag::LimitFlag;
use super::nodes::map;
use super::nodes::scalar;
use super::request_set::RequestSet;
use crate::config::mistakes::Mistakes;
use crate::config::source::SourceRange;
use crate::config::yaml::Content;
use crate::config::yaml::Node;

/// A route for every area and for what lies in several, the narrowest first, each with every limit that holds there: so
/// the first match has them all.
pub(super) fn routes(limits: &[LimitFlag], mistakes: &mut Mistakes) -> Vec<Node> {
    let mut areas: Vec<(RequestSet, SourceRange)> = Vec::new();
    let mut open: Vec<(RequestSet, SourceRange)> = limits
        .iter()
        .flat_map(|limit| limit.scope.request_sets().into_iter().map(|area| (area, limit.scope.at)))
        .collect();
    open.reverse();
    while let Some((area, at)) = open.pop() {
        if areas.iter().any(|(known, _)| known.is_same(&area)) {
            continue;
        }
        if areas.len() == MAX_ROUTES {
            let message = format!("these limits overlap in more than {MAX_ROUTES} ways");
            mistakes.report(at, message, "write them into a file: `portcullis run -c portcullis.yaml`");
            return Vec::new();
        }
        open.extend(areas.iter().filter_map(|(known, _)| area.intersection(known)).map(|both| (both, at)));
        areas.push((area, at));
    }
    // What lies in another area lies in all that hold that one too.
    areas.sort_by_cached_key(|(area, _)| {
        let around =
            limits.iter().flat_map(|limit| limit.scope.request_sets()).filter(|other| area.lies_in(other)).count();
        std::cmp::Reverse((around, area.segments.len(), !area.open))
    });
    let route = |(area, at): &(RequestSet, SourceRange)| {
        let holds = |limit: &&LimitFlag| limit.scope.request_sets().iter().any(|other| area.lies_in(other));
        let nodes = limits.iter().filter(holds).map(|limit| limit.node.clone()).collect();
        map(*at, vec![("match", scalar(*at, area.text())), ("limits", Node { at: *at, content: Content::List(nodes) })])
    };
    areas.iter().map(route).collect()
}

/// More overlaps than these are for a file.
const MAX_ROUTES: usize = 300;
