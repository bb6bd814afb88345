//! Reads logs and proposes a configuration.

use std::collections::VecDeque;

use smallvec::SmallVec;

use super::figures::Answer;
use super::figures::Figures;
use super::paths;
use super::paths::PathTree;
use super::route;
use super::route::RouteShape;
use super::router::Router;
use super::yaml;
use super::yaml::Source;
use crate::client::ClientIp;
use crate::client::Prefix;
use crate::clock::Timestamp;
use crate::replay::LogFiles;
use crate::replay::LoggedRequest;
use crate::replay::Position;
use crate::replay::ReadError;
use crate::request::path::CanonicalPath;

/// A whole configuration, with a reason for each limit in its comments. `progress` is called now and then.
pub fn suggest(mut logs: LogFiles, mut progress: impl FnMut(Position)) -> Result<String, ReadError> {
    logs.require_request()?;
    let mut sample = VecDeque::new();
    while sample.len() < SAMPLE
        && let Some(request) = logs.next_request()?
    {
        sample.push_back(request);
    }
    let router = Router::of_traffic(shapes(&sample), sample.iter());
    let mut figures = Figures::new(router.shapes.len());
    let (mut read, mut first, mut last, mut now) = (0_u64, None, Timestamp::EPOCH, Timestamp::EPOCH);
    loop {
        let next = match sample.pop_front() {
            Some(request) => Some(request),
            None => logs.next_request()?,
        };
        let Some(request) = next else { break };
        read += 1;
        if read.is_multiple_of(PROGRESS_EVERY) {
            progress(logs.position());
        }
        first.get_or_insert(request.started);
        last = last.max(request.started);
        let Some(walk) = router.walk(&request) else { continue };
        // No limit has seen what was refused.
        now = now.max(request.started);
        let client = Prefix::default().cut(ClientIp::new(request.client));
        let taken: SmallVec<[u16; 4]> = walk.collected.iter().map(|route| route.0 + 1).collect();
        figures.add(&taken, client, now, Answer::of(&request));
    }
    progress(logs.position());
    let source = Source {
        requests: read,
        first: first.unwrap_or_default(),
        last,
        formats: logs.formats(),
        lines: logs.counts(),
    };
    Ok(yaml::write(&source, &router.shapes, &figures))
}

/// The routes that the requests of a sample deserve.
fn shapes(sample: &VecDeque<LoggedRequest>) -> Vec<RouteShape> {
    let mut tree = PathTree::default();
    // What is not there is mostly what scanners look for.
    let is_there = |request: &&LoggedRequest| {
        request.status.is_none_or(|status| ![400, 404, 405, 410, 414, 501].contains(&status.as_u16()))
    };
    let is_usual = |request: &&LoggedRequest| request.method.as_str().bytes().all(|byte| byte.is_ascii_uppercase());
    for request in sample.iter().filter(is_there).filter(is_usual) {
        let target = request.path_and_query();
        let path = CanonicalPath::new(target.split('?').next().unwrap_or(target));
        if !paths::is_static(path.folded()) {
            tree.add(request.method.as_str(), &paths::segments(path.folded()));
        }
    }
    route::choose(tree.groups())
}

/// How many requests decide which routes there are.
const SAMPLE: usize = 200_000;

/// In requests.
const PROGRESS_EVERY: u64 = 4096;
