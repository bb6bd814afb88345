//! Advice about probable misconfigurations, judged from counters once a second. A request pays for it only where it is
//! unusual: one counter where it lacks a part of a key, one where a peer that is no trusted proxy names its client, and one
//! where a login meets no limit on logins.

mod finding;
mod judgement;
mod near_paths;

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::time::Duration;

use http::{Method, StatusCode};
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use tracing::warn;

pub use self::finding::{Advice, AdviceKind};
pub use self::near_paths::{NearPath, NearPaths};
use crate::record::RequestRecord;
use crate::record::advice::finding::Finding;
use crate::record::advice::judgement::{AdviceStatus, AdviceSubject, Judge};
use crate::record::heavy_keys::space_saving::SpaceSaving;
use crate::rules::decision::Policy;
use crate::rules::key::Selector;
use crate::rules::limit::{Limit, Missing};
use crate::rules::route::Route;
use crate::words::clock::Timestamp;
use crate::words::recipes::{PathPrefix, Recipe, prefixes};

/// For this long, advice that was logged is not logged again.
const SILENT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Advice that ends and holds again so soon has held all the time.
const RESUMED_WITHIN: Duration = Duration::from_secs(10 * 60);

/// The advice that holds now. It is logged when it begins.
#[derive(Debug, Default)]
pub struct Advisor {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    advice: BTreeMap<AdviceSubject, Advice>,
    judge: Judge,
    /// When advice was logged last.
    logged: BTreeMap<AdviceSubject, Timestamp>,
    /// Advice that a reload may have interrupted: since when it held, and until when. What proxies ask about is seen anew after
    /// a reload.
    interrupted: BTreeMap<AdviceSubject, (Timestamp, Timestamp)>,
}

impl Advisor {
    /// The advice that holds, in the order of its kinds.
    pub fn advice(&self) -> Vec<Advice> {
        self.state.lock().advice.values().cloned().collect()
    }

    /// Judges the counts so far. To be called every second.
    pub fn judge(&self, observed: &Observed, now: Timestamp) {
        for Advice { kind, message, limit, route, help, .. } in self.state.lock().judge(observed, now) {
            let (limit, route) = (limit.as_deref(), route.as_deref());
            warn!(advice = kind.as_str(), limit, route, help, "{message}; {help}");
        }
    }
}

impl State {
    /// Returns the advice that is to be logged.
    fn judge(&mut self, observed: &Observed, now: Timestamp) -> Vec<Advice> {
        self.forget_others(observed, now);
        let mut begun = Vec::new();
        for (subject, verdict) in self.judge.judge(observed) {
            match verdict {
                AdviceStatus::Holds(finding) => begun.extend(self.begin(subject, finding, now)),
                AdviceStatus::DoesNotHold => drop(self.advice.remove(&subject)),
                AdviceStatus::Unchanged => {}
            }
        }
        begun
    }

    /// Drops the advice about limits and routes that are not in force any more.
    fn forget_others(&mut self, observed: &Observed, now: Timestamp) {
        let limits: HashSet<&str> = observed.limits.iter().map(|limit| &*limit.name).collect();
        let unseen: HashSet<&str> = observed.unseen.iter().map(|route| &*route.name).collect();
        let routes: HashSet<&str> = observed.routes.iter().map(|route| &*route.name).collect();
        let logins: HashSet<&str> = observed.unlimited_logins.iter().map(|login| &*login.path).collect();
        let near: HashSet<&str> = observed.near_paths.iter().map(|near| &*near.route).collect();
        let is_in_force = |(kind, name): &AdviceSubject| match kind {
            AdviceKind::MissingField | AdviceKind::PatternMatchesNothing | AdviceKind::LimitNeverCounted => {
                limits.contains(&**name)
            }
            AdviceKind::OutcomeMatchesNeither => routes.contains(&**name),
            AdviceKind::AnswersUnseen => unseen.contains(&**name),
            AdviceKind::UnlimitedLogin => logins.contains(&**name),
            AdviceKind::RouteNeverAskedFor => near.contains(&**name),
            AdviceKind::UntrustedForwarding
            | AdviceKind::OneClient
            | AdviceKind::KeysUnavailable
            | AdviceKind::StoreFull
            | AdviceKind::ReloadRefused
            | AdviceKind::WaitsForStart
            | AdviceKind::Check => true,
        };
        let interrupted = &mut self.interrupted;
        self.advice.retain(|subject, advice| {
            let stays = is_in_force(subject);
            if !stays && subject.0 == AdviceKind::AnswersUnseen {
                interrupted.insert(subject.clone(), (advice.since, now));
            }
            stays
        });
        interrupted.retain(|_, (_, until)| now.since(*until) < RESUMED_WITHIN);
        self.logged.retain(|subject, _| is_in_force(subject) || interrupted.contains_key(subject));
        self.judge.retain(is_in_force);
    }

    /// Begins advice, or renews it. Returns it where it is to be logged: where it comes and goes, once a day is enough.
    fn begin(&mut self, subject: AdviceSubject, Finding { message, help }: Finding, now: Timestamp) -> Option<Advice> {
        let (kind, name) = subject.clone();
        let (limit, route) = match kind {
            AdviceKind::MissingField | AdviceKind::PatternMatchesNothing | AdviceKind::LimitNeverCounted => {
                (Some(name), None)
            }
            AdviceKind::OutcomeMatchesNeither | AdviceKind::AnswersUnseen | AdviceKind::RouteNeverAskedFor => {
                (None, Some(name))
            }
            AdviceKind::UntrustedForwarding
            | AdviceKind::OneClient
            | AdviceKind::UnlimitedLogin
            | AdviceKind::KeysUnavailable
            | AdviceKind::StoreFull
            | AdviceKind::ReloadRefused
            | AdviceKind::WaitsForStart
            | AdviceKind::Check => (None, None),
        };
        let resumed = self.interrupted.remove(&subject).map(|(since, _)| since);
        let known = self.advice.get(&subject).map(|known| known.since).or(resumed);
        let was_logged = self.logged.get(&subject).is_some_and(|logged| now.since(*logged) < SILENT_FOR);
        let is_to_be_logged = known.is_none() && !was_logged;
        let advice = Advice { kind, message, since: known.unwrap_or(now), limit, route, help };
        self.advice.insert(subject.clone(), advice.clone());
        if !is_to_be_logged {
            return None;
        }
        self.logged.insert(subject, now);
        Some(advice)
    }
}

// Counts requests in which a peer that is no trusted proxy names its client, and finds these peers.

/// One of this many requests is looked at. A prime, so that peers that take turns are all seen.
const SAMPLED: u64 = 7;

/// Proxies are few. A client that forges the header from many addresses does not push them out.
const MAX_PEERS: usize = 32;

/// Counted on every core.
#[derive(Debug)]
pub struct UntrustedForwarding {
    requests: Counter,
    /// Some of the requests since the last look, by peer.
    /// The value is the header that its first request had.
    peers: Mutex<SpaceSaving<IpAddr, Box<str>, 1>>,
}

/// A peer that names clients, and is no trusted proxy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UntrustedPeer {
    pub address: IpAddr,
    /// In which it names them.
    pub header: String,
    /// How many of its requests were looked at.
    pub samples: u64,
}

impl Default for UntrustedForwarding {
    fn default() -> Self {
        Self { requests: Counter::default(), peers: Mutex::new(SpaceSaving::new(MAX_PEERS)) }
    }
}

impl UntrustedForwarding {
    pub fn count(&self, peer: IpAddr, header: &str) {
        // Another core that looks at the same moment is enough.
        if self.requests.inc().is_multiple_of(SAMPLED)
            && let Some(mut peers) = self.peers.try_lock()
        {
            peers.add(peer, [1], || header.into(), |_| ());
        }
    }

    /// All requests so far.
    pub fn requests(&self) -> u64 {
        self.requests.get()
    }

    /// The peers since the last look.
    pub fn take_peers(&self) -> Vec<UntrustedPeer> {
        let taken = std::mem::replace(&mut *self.peers.lock(), SpaceSaving::new(MAX_PEERS));
        let peers = taken.entries().map(|(&address, entry)| UntrustedPeer {
            address,
            header: entry.value.to_string(),
            samples: entry.counts[0],
        });
        peers.collect()
    }
}

// Counts logins that no limit on logins meets: under a path that ends like one of a recipe, or of the configuration. Only a
// POST that was forwarded is looked at, and its last segment ends the look.

/// Applications are few. A client that invents paths does not push out one that is asked for often.
const MAX_PATHS: usize = 16;

/// In bytes. No login has a longer path.
const MAX_PATH: usize = 128;

/// Counted on every core, under one configuration.
#[derive(Debug)]
pub struct UnlimitedLogins {
    /// By `LimitId`: whether it counts logins.
    counts_logins: Vec<bool>,
    /// By `RouteId`: whether it is for a login, and limited.
    guards_logins: Vec<bool>,
    configured: Vec<ConfiguredLogin>,
    /// The last segments of all logins that are known, in lower case.
    last_segments: Vec<Box<str>>,
    /// By a hash of the path.
    found: Mutex<SpaceSaving<u64, FoundLogin, 1>>,
}

#[derive(Debug)]
struct FoundLogin {
    path: String,
    configured: Option<ConfiguredLogin>,
}

/// A login that a route is for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConfiguredLogin {
    pub route: Box<str>,
    /// In lower case.
    pub path: Box<str>,
}

/// A path of logins that no limit on logins has met.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnlimitedLogin {
    /// As it was sent, in lower case.
    pub path: String,
    pub requests: u64,
    /// The route that is for such a login, at another path.
    pub configured: Option<ConfiguredLogin>,
}

impl UnlimitedLogins {
    pub fn new(policy: &Policy) -> Self {
        let counts_logins: Vec<bool> = policy.limits.iter().map(counts_logins).collect();
        let is_login = |route: &&Route| {
            let mut limits = route.limits.iter().map(|limit| counts_logins[usize::from(limit.0)]);
            route.outcome.is_some() || limits.any(|counts| counts)
        };
        let configured: Vec<_> = policy.routes.all().iter().filter(is_login).filter_map(configured).collect();
        let mut last_segments: Vec<Box<str>> =
            configured.iter().filter_map(|login| last_segment(&login.path)).collect();
        last_segments.extend(Recipe::login_paths().filter_map(last_segment));
        last_segments.sort();
        last_segments.dedup();
        let guards_logins = policy.routes.all().iter().map(|route| {
            let path = route.condition.path.as_ref().map(ToString::to_string).unwrap_or_default();
            let is_for_login = !route.limits.is_empty() && last_segment_in(&last_segments, &path).is_some();
            is_login(&route) || is_for_login
        });
        Self {
            guards_logins: guards_logins.collect(),
            counts_logins,
            configured,
            last_segments,
            found: Mutex::new(SpaceSaving::new(MAX_PATHS)),
        }
    }

    /// Counts a request that has ended, if it is such a login.
    pub fn count(&self, request: &RequestRecord<'_>) {
        if request.method != Method::POST
            || request.upstream.is_none()
            || last_segment_in(&self.last_segments, request.path).is_none()
        {
            return;
        }
        let is_guarded = request.route.is_some_and(|route| self.guards_logins[usize::from(route.0)])
            || request.limits.iter().any(|report| self.counts_logins[usize::from(report.limit.0)]);
        if is_guarded || request.path.len() > MAX_PATH || !request.status.is_some_and(is_there) {
            return;
        }
        let path = request.path.to_ascii_lowercase();
        let Some(found_login) = self.known(path) else { return };
        // Another core that counts at the same moment is enough.
        if let Some(mut found) = self.found.try_lock() {
            found.add(hash(&found_login.path), [1], || found_login, |_| ());
        }
    }

    /// What is known of this path: the route for such a login, or a recipe.
    fn known(&self, path: String) -> Option<FoundLogin> {
        // What a client has sent is shown only where it is plain.
        path.parse::<PathPrefix>().ok()?;
        let configured = self.configured.iter().find(|login| prefixes(&login.path, &path).is_some()).cloned();
        let is_known = configured.is_some() || Recipe::of_login_path(&path).is_some();
        is_known.then_some(FoundLogin { path, configured })
    }

    /// What was found so far.
    pub fn found(&self) -> Vec<UnlimitedLogin> {
        let found = self.found.lock();
        let logins = found.entries().map(|(_, entry)| UnlimitedLogin {
            path: entry.value.path.clone(),
            requests: entry.counts[0],
            configured: entry.value.configured.clone(),
        });
        logins.collect()
    }
}

/// The login that a route is for. `None`: it is for several paths.
fn configured(route: &Route) -> Option<ConfiguredLogin> {
    let path = route.condition.path.as_ref()?.to_string().to_ascii_lowercase();
    let is_one = path.len() > 1 && !path.contains(['*', '{']);
    is_one.then(|| ConfiguredLogin { route: (*route.name).into(), path: path.into() })
}

fn hash(path: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish()
}

fn counts_logins(limit: &Limit) -> bool {
    let mut parts = limit.key.parts.iter().chain(&limit.distinct);
    limit.count.outcome().is_some() || parts.any(|part| part.selector.choices().any(Selector::is_login_name))
}

fn last_segment(path: &str) -> Option<Box<str>> {
    let last = path.trim_end_matches('/').rsplit('/').next()?;
    (!last.is_empty()).then(|| last.into())
}

fn last_segment_in<'s>(segments: &'s [Box<str>], path: &str) -> Option<&'s str> {
    let last = path.trim_end_matches('/').rsplit('/').next()?;
    segments.iter().map(|segment| &**segment).find(|segment| segment.eq_ignore_ascii_case(last))
}

/// Whether the application has such a path: scanners ask for many that it has not.
fn is_there(status: StatusCode) -> bool {
    !status.is_server_error() && ![400, 404, 405, 410, 414].contains(&status.as_u16())
}

// The input for advice: the counts so far, under the names in force.

/// All counts are since the start of the process.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Observed {
    /// Requests that were forwarded.
    pub passed: u64,
    /// Forwarded requests in which a peer that is no trusted proxy named its client.
    pub untrusted_forwarding: u64,
    /// The untrusted peers that name clients, since the last time.
    pub untrusted_peers: Vec<UntrustedPeer>,
    /// The client with the most requests in the last minutes.
    pub busiest_client: Option<BusiestClient>,
    pub limits: Vec<ObservedLimit>,
    pub routes: Vec<ObservedRoute>,
    /// Routes that a proxy has asked about, and that need more than a question.
    pub unseen: Vec<UnseenRoute>,
    /// The paths of logins that no limit on logins has met.
    pub unlimited_logins: Vec<UnlimitedLogin>,
    /// The limited routes that nobody has asked for, with a path much like theirs that is asked for.
    pub near_paths: Vec<NearPath>,
    /// The keys that tokens are verified with, where they cannot be fetched.
    pub unavailable_keys: Option<UnavailableKeys>,
    /// New keys of limits that found no room in the store: their requests were denied.
    pub turned_away: u64,
}

/// Keys that could not be fetched the last time.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnavailableKeys {
    /// The URL.
    pub source: String,
    pub reason: String,
    /// Whether keys are known from before.
    pub are_known: bool,
}

/// A client, and its part of all requests.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BusiestClient {
    /// Its address, or the network that counts as one client.
    pub client: String,
    pub is_trusted_proxy: bool,
    pub requests: u64,
    pub all: u64,
}

/// A limit in force.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ObservedLimit {
    pub name: String,
    /// The selectors of its key, as the configuration writes them.
    pub key: Vec<String>,
    /// The login field among them; `None`: its key has none.
    pub login_field: Option<String>,
    pub missing: Missing,
    /// Whether some clients are free of it.
    pub spares_some: bool,
    /// The routes that it stands on; empty: it holds for every request.
    pub routes: Vec<String>,
    /// The domain whose descriptors it counts; `None`: it counts requests.
    pub domain: Option<String>,
    /// Whether its routes match only rare requests, such as ones with a certain header: there may be none for long.
    pub waits_for_rare_requests: bool,
    /// Requests that were forwarded on its routes.
    pub passed: u64,
    /// Whether requests took another route with limits, so that the paths of the configuration are those of the application.
    pub others_are_met: bool,
    /// Requests that it decided about.
    pub decided: u64,
    /// Requests among them that lacked a part of its key.
    pub lacking: u64,
    /// A `pattern` of its names.
    pub pattern: Option<String>,
    /// Requests that it decided whose name does not match the pattern.
    pub unmatched: u64,
}

/// A route in force about which a proxy has asked that forwards its requests itself, so that their answers and ends are not
/// seen here.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnseenRoute {
    pub name: String,
    /// The limits that wait for answers.
    pub waiting: Vec<String>,
    /// The limits on concurrent requests.
    pub concurrent: Vec<String>,
    /// Whether successes would make clients known.
    pub knows_clients: bool,
    /// Whether successes would give sessions.
    pub learns_sessions: bool,
    /// Whether it is asked about by descriptors, so that it can never have requests.
    pub is_of_domain: bool,
}

/// A route in force that says what answers mean.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ObservedRoute {
    pub name: String,
    /// Answers of the application.
    pub answers: u64,
    /// Answers that were neither a success nor a failure.
    pub neither: u64,
}

#[cfg(test)]
mod advisor_tests {
    use super::{ObservedRoute, UnseenRoute, *};

    #[test]
    fn advice_that_comes_and_goes_is_logged_once_a_day() {
        let mut state = State::default();
        let mut logged_at = |thousand: u64, neither: u64, hour: u64| {
            let route = ObservedRoute { name: "login".into(), answers: thousand * 1000, neither };
            let observed = Observed { routes: vec![route], ..Observed::default() };
            let now = Timestamp::from_micros(hour * 3_600_000_000);
            state.judge(&observed, now).len()
        };
        assert_eq!(logged_at(1, 600, 1), 1);
        assert_eq!(logged_at(2, 600, 2), 0);
        assert_eq!(logged_at(3, 1600, 3), 0);
        assert_eq!(logged_at(4, 1600, 4), 0);
        assert_eq!(logged_at(5, 2600, 26), 1);
    }

    #[test]
    fn what_a_reload_interrupts_has_held_all_the_time() {
        let mut state = State::default();
        let mut logged_at = |is_seen: bool, minute: u64| {
            let (name, concurrent) = ("login".to_owned(), vec!["few".to_owned()]);
            let route = UnseenRoute {
                name,
                waiting: Vec::new(),
                concurrent,
                knows_clients: false,
                learns_sessions: false,
                is_of_domain: false,
            };
            let observed = Observed { unseen: is_seen.then_some(route).into_iter().collect(), ..Observed::default() };
            let now = Timestamp::from_micros(minute * 60_000_000);
            let logged = state.judge(&observed, now).len();
            (logged, state.advice.values().map(|advice| advice.since.as_micros() / 60_000_000).collect::<Vec<_>>())
        };
        assert_eq!(logged_at(true, 1), (1, vec![1]));
        assert_eq!(logged_at(false, 2), (0, vec![]));
        assert_eq!(logged_at(true, 9), (0, vec![1]));
        // A reload more than a day later.
        assert_eq!(logged_at(false, 3000), (0, vec![]));
        assert_eq!(logged_at(true, 3009), (0, vec![1]));
        // It was mended, and is there again.
        assert_eq!(logged_at(false, 4000), (0, vec![]));
        assert_eq!(logged_at(false, 4010), (0, vec![]));
        assert_eq!(logged_at(true, 4020), (1, vec![4020]));
    }
}

#[cfg(test)]
mod observed_tests {
    use super::*;

    #[test]
    fn the_peers_that_name_clients_are_known_until_somebody_has_looked() {
        let untrusted = UntrustedForwarding::default();
        let [proxy, other]: [IpAddr; 2] = [[10, 0, 0, 10].into(), [10, 0, 0, 11].into()];
        for number in 0..1400_u16 {
            untrusted.count(if number.is_multiple_of(2) { proxy } else { other }, "x-forwarded-for");
            if number.is_multiple_of(10) {
                untrusted.count(IpAddr::from([0, 0, 0, 0, 0, 0, 0, number]), "forwarded");
            }
        }
        assert_eq!(untrusted.requests(), 1540);
        let mut peers = untrusted.take_peers();
        peers.sort_by_key(|peer| std::cmp::Reverse(peer.samples));
        let mut heaviest = [peers[0].address, peers[1].address];
        heaviest.sort();
        assert_eq!((heaviest, &*peers[0].header), ([proxy, other], "x-forwarded-for"));
        assert!(peers[1].samples > 80 && peers.len() <= MAX_PEERS, "{peers:?}");
        assert_eq!(untrusted.take_peers(), []);
    }
}

#[cfg(test)]
mod tests;
