//! Reads logs and proposes a configuration.

use std::collections::VecDeque;

use super::figures::Figures;
use super::paths;
use super::paths::PathTree;
use super::route;
use super::route::RouteShape;
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
    let mut sample = VecDeque::new();
    while sample.len() < SAMPLE
        && let Some(request) = logs.next_request()?
    {
        sample.push_back(request);
    }
    let routes = routes(&sample);
    let mut figures = Figures::new(routes.len());
    let (mut read, mut first, mut last) = (0_u64, None, Timestamp::EPOCH);
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
        last = last.max(request.started);
        let at = last;
        first.get_or_insert(at);
        let client = Prefix::default().cut(ClientIp::new(request.client));
        figures.add(0, client, at, request.status);
        if let Some(route) = route_of(&routes, &request) {
            figures.add(route, client, at, request.status);
        }
    }
    progress(logs.position());
    let source = Source { requests: read, first: first.unwrap_or_default(), last, formats: logs.formats() };
    Ok(yaml::write(&source, &routes, &figures))
}

/// The routes that the requests of a sample deserve.
fn routes(sample: &VecDeque<LoggedRequest>) -> Vec<RouteShape> {
    let mut tree = PathTree::default();
    // What is not there is mostly what scanners look for.
    let is_there = |request: &&LoggedRequest| {
        request.status.is_none_or(|status| ![400, 404, 405, 410, 414, 501].contains(&status.as_u16()))
    };
    let is_usual = |request: &&LoggedRequest| request.method.as_str().bytes().all(|byte| byte.is_ascii_uppercase());
    for request in sample.iter().filter(is_there).filter(is_usual) {
        with_path(request, |path| tree.add(request.method.as_str(), &paths::segments(path)));
    }
    route::choose(tree.groups())
}

/// The number of the route of a request, from 1; the first match wins.
fn route_of(routes: &[RouteShape], request: &LoggedRequest) -> Option<u16> {
    with_path(request, |path| {
        let segments = paths::segments(path);
        let place = routes.iter().position(|route| route.matches(request.method.as_str(), &segments));
        place.and_then(|place| u16::try_from(place + 1).ok())
    })?
}

/// Calls `then` with the path as rules compare it. `None`: it is that of a static file.
fn with_path<T>(request: &LoggedRequest, then: impl FnOnce(&str) -> T) -> Option<T> {
    let target = request.path_and_query();
    let path = target.split('?').next().unwrap_or(target);
    let path = CanonicalPath::new(path);
    (!paths::is_static(path.folded())).then(|| then(path.folded()))
}

/// How many requests decide which routes there are.
const SAMPLE: usize = 200_000;

/// In requests.
const PROGRESS_EVERY: u64 = 4096;
