//! Paths that are much like the one of a route which nobody asks for: the same under another prefix, or two letters away at most.

use std::sync::atomic::{AtomicBool, Ordering};

use http::Method;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;

use super::{MAX_PATH, MAX_PATHS, SAMPLED, hash, is_there};
use crate::record::RequestRecord;
use crate::record::heavy_keys::space_saving::SpaceSaving;
use crate::rules::decision::Policy;
use crate::rules::request::CanonicalPath;
use crate::rules::route::{MethodSet, PathPattern, Route};
use crate::words::recipes::{PathPrefix, prefixes};

/// So many of the requests that are looked at: fewer may be those of a scanner.
const ENOUGH_SAMPLES: u64 = 10;

/// In letters.
const MAX_DISTANCE: usize = 2;

/// Samples the paths of forwarded requests that no route of their own has taken, as long as a limited route has had no request.
/// Counted on every core, under one configuration.
#[derive(Debug)]
pub struct NearPaths {
    /// By `RouteId`: whether it is for one path, or for those below one.
    is_for_a_path: Vec<bool>,
    /// Whether a limited route with a path has had no request yet.
    is_needed: AtomicBool,
    requests: Counter,
    /// By a hash of method and path.
    found: Mutex<SpaceSaving<u64, Asked, 1>>,
}

#[derive(Debug)]
struct Asked {
    method: Method,
    path: Box<str>,
}

/// A limited route that nobody asks for, and what is asked for instead.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NearPath {
    pub route: String,
    /// The path of the route, as the configuration writes it.
    pub pattern: String,
    pub method: String,
    /// As it was sent.
    pub path: String,
}

impl NearPaths {
    pub fn new(policy: &Policy) -> Self {
        let routes = policy.routes.all();
        Self {
            is_for_a_path: routes.iter().map(|route| pattern(route).is_some()).collect(),
            is_needed: AtomicBool::new(routes.iter().any(is_waited_for)),
            requests: Counter::default(),
            found: Mutex::new(SpaceSaving::new(MAX_PATHS)),
        }
    }

    /// Counts a request that has ended, if it took no route for its path.
    pub fn count(&self, request: &RequestRecord<'_>) {
        let has_own = request.route.is_some_and(|route| self.is_for_a_path[usize::from(route.0)]);
        if has_own || !self.is_needed.load(Ordering::Relaxed) || request.upstream.is_none() {
            return;
        }
        if !self.requests.inc().is_multiple_of(SAMPLED)
            || request.path.len() > MAX_PATH
            || !request.status.is_some_and(is_there)
            // What a client has sent is shown only where it is plain.
            || request.path.parse::<PathPrefix>().is_err()
        {
            return;
        }
        let asked = || Asked { method: request.method.clone(), path: request.path.into() };
        // Another core that counts at the same moment is enough.
        if let Some(mut found) = self.found.try_lock() {
            found.add(hash(&format!("{} {}", request.method, request.path)), [1], asked, |_| ());
        }
    }

    /// The limited routes that have had no request, each with what is asked for instead. `is_asked`: whether a route has had any.
    pub fn found(&self, policy: &Policy, is_asked: impl Fn(&Route) -> bool) -> Vec<NearPath> {
        let waiting: Vec<&Route> =
            policy.routes.all().iter().filter(|route| is_waited_for(route) && !is_asked(route)).collect();
        self.is_needed.store(!waiting.is_empty(), Ordering::Relaxed);
        let found = self.found.lock();
        let asked: Vec<&Asked> = found
            .entries()
            .filter(|(_, entry)| entry.counts[0] >= ENOUGH_SAMPLES)
            .map(|(_, entry)| &entry.value)
            .collect();
        let near = waiting.into_iter().filter_map(|route| {
            let asked = asked.iter().find(|asked| asked.is_meant_for(route))?;
            Some(NearPath {
                route: route.name.to_string(),
                pattern: pattern(route)?,
                method: asked.method.to_string(),
                path: asked.path.to_string(),
            })
        });
        near.collect()
    }
}

impl Asked {
    fn is_meant_for(&self, route: &Route) -> bool {
        let has_method = |methods: &MethodSet| methods.contains(self.method.as_str());
        let (Some(path), Some(text)) = (&route.condition.path, pattern(route)) else { return false };
        route.condition.methods.as_ref().is_none_or(has_method)
            && !path.matches(&CanonicalPath::new(&self.path))
            && (self.is_below_another_prefix(path, &text) || self.is_misspelt(&text))
    }

    /// The path of the route stands behind a prefix in the one that is asked for, or the other way round.
    fn is_below_another_prefix(&self, path: &PathPattern, text: &str) -> bool {
        let mut ends = self.path.match_indices('/').skip(1).map(|(at, _)| &self.path[at..]);
        prefixes(text, &self.path).is_some() || ends.any(|end| path.matches(&CanonicalPath::new(end)))
    }

    /// In two letters, or in half of a short path.
    fn is_misspelt(&self, text: &str) -> bool {
        let text = text.trim_end_matches("/*").to_lowercase();
        let segments = text.matches('/').count();
        let end = self.path.match_indices('/').nth(segments).map_or(self.path.len(), |(at, _)| at);
        let letters = text.chars().count() - 1;
        strsim::osa_distance(&text, &self.path[..end].to_lowercase()) <= MAX_DISTANCE.min(letters / 2)
    }
}

/// Whether a limited route is for any ordinary request to a path.
fn is_waited_for(route: &Route) -> bool {
    let condition = &route.condition;
    pattern(route).is_some()
        && !route.limits.is_empty()
        && condition.headers.is_empty()
        && condition.queries.is_empty()
        && condition.cookies.is_empty()
        && condition.client.is_empty()
}

/// The path of a route. `None`: it has none, or takes all.
fn pattern(route: &Route) -> Option<String> {
    let text = route.condition.path.as_ref()?.to_string();
    (text != "/" && text != "/*").then_some(text)
}
