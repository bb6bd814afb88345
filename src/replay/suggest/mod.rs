//! Proposes limits that logged traffic would have lived with.
//!
//! - `paths`: groups the paths of a sample; this file: the requests that become a route, which of them are logins, and the recipe
//!   for an application that is known by its logins.
//! - `figures`: how much the clients of a route did in their busiest minute and hour, and the limits for that.
//! - `yaml`: the file.

mod figures;
mod paths;
mod yaml;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::path::Path;

use smallvec::SmallVec;

use crate::config;
use crate::gateway::header_kind::SignificantHeaders;
use crate::replay::logged_request::admitted;
use crate::replay::suggest::figures::{Answer, Conduct, Figures, NOT_THERE, Statuses, attackers};
use crate::replay::suggest::paths::{PathGroup, PathTree};
use crate::replay::suggest::yaml::LogSummary;
use crate::replay::{LogFiles, LoggedRequest, Position, ReadError};
use crate::rules::client::{ClientIp, Prefix};
use crate::rules::list::Membership;
use crate::rules::request::CanonicalHead;
use crate::rules::request::path::CanonicalPath;
use crate::rules::route::{BodyMethods, Case, Condition, RequestReadings, Route, RouteTable, UpstreamId, Walk};
use crate::words::clock::Timestamp;
use crate::words::recipes::{LoginPlace, RECIPES, Recipe};

/// How many requests decide which routes there are.
const SAMPLE: usize = 200_000;

/// In requests.
const PROGRESS_EVERY: u64 = 4096;

/// A whole configuration, with a reason for each limit in its comments. `progress` is called now and then.
pub fn suggest(mut logs: LogFiles, mut progress: impl FnMut(Position)) -> Result<String, ReadError> {
    logs.require_request()?;
    let mut sample = VecDeque::new();
    while sample.len() < SAMPLE
        && let Some(request) = logs.next_request()?
    {
        sample.push_back(request);
    }
    let attackers = attackers_of(&sample);
    let (application, others) = known_application(sample.iter(), &attackers);
    let known = application.as_ref().map(|application| application.routes.clone()).unwrap_or_default();
    let router = Router::of_traffic(known, shapes(&sample, &attackers), sample.iter());
    let mut figures = Figures::new(router.known.len() + router.shapes.len());
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
        // Refused requests never reached a limit.
        now = now.max(request.started);
        let client = client(&request);
        let taken: SmallVec<[u16; 4]> = walk.collected.iter().map(|route| route.0 + 1).collect();
        figures.add(&taken, client, now, Answer::of(&request));
    }
    progress(logs.position());
    let source = LogSummary {
        requests: read,
        first: first.unwrap_or_default(),
        last,
        formats: logs.formats(),
        lines: logs.counts(),
    };
    figures.leave_out_attackers(&router.logins());
    let application = application.map(|application| Application { application, others });
    Ok(yaml::write(&source, application.as_ref(), &router.shapes, &figures))
}

/// The application that the log is of, and the commands for others in it.
#[derive(Debug)]
struct Application {
    application: KnownApplication,
    others: Vec<String>,
}

/// The address that a request counts under.
fn client(request: &LoggedRequest) -> IpAddr {
    Prefix::default().cut(ClientIp::new(request.client))
}

/// The clients of a sample that look like attackers, as far as can be told before the routes are known.
fn attackers_of(sample: &VecDeque<LoggedRequest>) -> BTreeSet<IpAddr> {
    let mut conducts: BTreeMap<IpAddr, Conduct> = BTreeMap::new();
    for request in sample {
        let conduct = conducts.entry(client(request)).or_default();
        let status = request.status.map(|status| status.as_u16());
        conduct.requests += 1;
        conduct.missing += u64::from(status.is_some_and(|status| NOT_THERE.contains(&status)));
        if status.is_some_and(|status| [401, 403].contains(&status)) {
            conduct.failures += 1;
        }
        if request.method == "POST" && is_named_like_a_login(&request.path_and_query().to_ascii_lowercase()) {
            conduct.logins += 1;
            conduct.successes += u64::from(request.status.is_some_and(|status| status.is_redirection()));
        }
    }
    attackers(&conducts)
}

/// Of one client this many times as many requests as of another one count for the choice of routes.
const FAR: u64 = 8;

/// The routes that the requests of a sample deserve.
fn shapes(sample: &VecDeque<LoggedRequest>, attackers: &BTreeSet<IpAddr>) -> Vec<RouteShape> {
    let mut tree = PathTree::default();
    let mut counted: BTreeMap<IpAddr, u64> = BTreeMap::new();
    for request in sample {
        *counted.entry(client(request)).or_default() += 1;
    }
    let mut counts: Vec<u64> = counted.values().copied().collect();
    counts.sort_unstable();
    // A flood of one client makes no route, and takes none away.
    let most = counts.get(counts.len() / 2).map_or(0, |middle| (middle * FAR).max(FEWEST * FAR));
    counted.clear();
    // Paths that do not exist are mostly requested by scanners.
    let is_there = |request: &&LoggedRequest| {
        request.status.is_none_or(|status| ![400, 404, 405, 410, 414, 501].contains(&status.as_u16()))
    };
    let is_usual = |request: &&LoggedRequest| request.method.as_str().bytes().all(|byte| byte.is_ascii_uppercase());
    for request in sample.iter().filter(is_there).filter(is_usual) {
        let count = counted.entry(client(request)).or_default();
        *count += 1;
        if *count > most || attackers.contains(&client(request)) {
            continue;
        }
        let target = request.path_and_query();
        let path = CanonicalPath::new(target.split('?').next().unwrap_or(target));
        if !paths::is_static(path.folded()) {
            tree.add(request.method.as_str(), &paths::segments(path.folded()));
        }
    }
    choose(tree.groups())
}

// Which routes are logins, and how their failures look.

/// Parts of paths in lower case.
const NAMES: [&str; 13] = [
    "login", "signin", "sign-in", "sign_in", "logon", "log-in", "session", "auth", "token", "xmlrpc", "password",
    "passwd", "signup",
];

/// A share of fewer requests says little.
const ENOUGH: u64 = 20;

/// In percent.
const MANY_REFUSED: u64 = 20;

/// How an application answers a login that failed, as far as statuses tell.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum FailureSign {
    /// 401 or 403.
    Refused,
    /// 200: the form is shown again. A success redirects.
    FormAgain,
    /// Statuses do not tell.
    None,
}

/// Why a route is taken for a login, and what tells a failure. `None`: it is none.
fn login(method: &str, path: &str, statuses: &Statuses) -> Option<(String, FailureSign)> {
    if method != "POST" {
        return None;
    }
    let named = NAMES.iter().find(|name| path.contains(**name));
    let refused = statuses.percent(statuses.refused);
    let reason = match named {
        Some(name) => format!("a login by its name (`{name}`)"),
        None if statuses.total >= ENOUGH && refused >= MANY_REFUSED => {
            format!("like a login: {refused} % were answered with 401 or 403")
        }
        None => return None,
    };
    let sign = if statuses.refused > 0 {
        FailureSign::Refused
    } else if statuses.redirects > 0 && statuses.ok > 0 {
        FailureSign::FormAgain
    } else {
        FailureSign::None
    };
    Some((reason, sign))
}

/// Whether the name of a path says that it is a login.
pub(super) fn is_named_like_a_login(path: &str) -> bool {
    NAMES.iter().any(|name| path.contains(name))
}

// A group of requests that becomes a route.

/// A path with one request in this many is worth a route.
const SHARE: u64 = 200;

const FEWEST: u64 = 20;

const MOST_ROUTES: usize = 12;

const MOST_LOGINS: usize = 8;

/// A method and a group of paths.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct RouteShape {
    /// GET stands for HEAD too.
    pub(super) method: Box<str>,
    path: PathGroup,
    /// In the sample.
    pub(super) requests: u64,
}

impl RouteShape {
    pub(super) fn is_named_like_a_login(&self) -> bool {
        &*self.method == "POST" && is_named_like_a_login(&self.path.to_string())
    }
}

/// The methods that rules do not tell apart have one name.
pub(super) fn method_group(method: &str) -> &str {
    if method == "HEAD" { "GET" } else { method }
}

/// The groups that deserve a route of their own: the most frequent ones, and the ones that are named like a login.
/// Groups that match fewest paths come first, because the first match wins; if equal, the most frequent, because one
/// path may be a spelling of another one.
pub(super) fn choose(mut groups: Vec<RouteShape>) -> Vec<RouteShape> {
    let total: u64 = groups.iter().map(|group| group.requests).sum();
    let least = (total / SHARE).max(FEWEST);
    groups.sort_by_key(|group| (Reverse(group.requests), group.path.to_string()));
    let (logins, others): (Vec<_>, Vec<_>) = groups.into_iter().partition(RouteShape::is_named_like_a_login);
    let others = others.into_iter().filter(|group| group.requests >= least).take(MOST_ROUTES);
    let mut chosen: Vec<_> = logins.into_iter().take(MOST_LOGINS).chain(others).collect();
    chosen.sort_by_key(|group| {
        (group.path.width(), Reverse(group.requests), group.path.to_string(), group.method.clone())
    });
    chosen
}

// The proposed routes, matched by the gateway's own route table, so that this module need not guess which requests
// match. `/index.php/login` is a request for `/login` too, and several routes may count one request.

/// The proposed routes in their order.
#[derive(Debug)]
pub(super) struct Router {
    /// The routes of a recipe, which come first.
    known: Vec<Route>,
    pub(super) shapes: Vec<RouteShape>,
    table: RouteTable,
}

impl Router {
    pub(super) fn new(known: Vec<Route>, shapes: Vec<RouteShape>) -> Self {
        let routes = shapes.into_iter().filter_map(|shape| Some((route(&shape)?, shape)));
        let (routes, shapes): (Vec<_>, _) = routes.unzip();
        let table = RouteTable::new(known.iter().cloned().chain(routes).collect());
        Self { known, shapes, table }
    }

    /// Without the routes that none of these requests takes, because others stand before them.
    pub(super) fn of_traffic<'r>(
        known: Vec<Route>,
        shapes: Vec<RouteShape>,
        traffic: impl Iterator<Item = &'r LoggedRequest>,
    ) -> Self {
        let all = Self::new(known, shapes);
        let mut is_taken = vec![false; all.known.len() + all.shapes.len()];
        for route in traffic.filter_map(|request| all.walk(request)?.primary) {
            is_taken[usize::from(route.0)] = true;
        }
        let shapes = all.shapes.into_iter().zip(is_taken.into_iter().skip(all.known.len()));
        let shapes = shapes.filter(|(_, is_taken)| *is_taken).map(|(shape, _)| shape);
        Self::new(all.known, shapes.collect())
    }

    /// The numbers of the routes that are for logins, as figures have them.
    fn logins(&self) -> Vec<u16> {
        let known = self.known.iter().map(|route| route.outcome.is_some() && is_for_post(route));
        let is_login = known.chain(self.shapes.iter().map(RouteShape::is_named_like_a_login));
        (1..).zip(is_login).filter(|(_, is_login)| *is_login).map(|(number, _)| number).collect()
    }

    /// The routes whose limits count a request. `None`: the gateway refuses it before any rule.
    pub(super) fn walk(&self, request: &LoggedRequest) -> Option<Walk> {
        let head = admitted(request, &SignificantHeaders::default(), false)?;
        let head = CanonicalHead::read(&head, ClientIp::new(request.client));
        let mut readings = RequestReadings::new(&head, BodyMethods::Known(&[]), &|_| Membership::None);
        Some(self.table.walk(&mut readings))
    }
}

/// Whether a route is for one path, which is posted to: what is for all paths is for more than logins.
fn is_for_post(route: &Route) -> bool {
    let Condition { methods, path, .. } = &route.condition;
    methods.is_some() && path.as_ref().is_some_and(|path| !path.to_string().ends_with("/*"))
}

/// `None`: its pattern cannot be written in a configuration.
fn route(shape: &RouteShape) -> Option<Route> {
    let text = format!("{} {}", shape.method, shape.path);
    Some(Route {
        condition: Condition::short(&text, Case::default()).ok()?,
        name: text.into(),
        domain: None,
        upstream: UpstreamId(0),
        only: None,
        limits: Vec::new(),
        outcome: None,
        known_clients: None,
        sessions: None,
        deny_response: None,
        denied: Vec::new(),
    })
}

// The recipe for the application in a log, by where its logins stand.

/// An application that a recipe is for.
#[derive(Debug)]
struct KnownApplication {
    recipe: &'static Recipe,
    /// The path that it stands below: `/blog`, or nothing.
    prefix: String,
    /// Logins in the sample, attackers left out.
    logins: u64,
    /// The routes of the recipe, as a configuration has them.
    text: String,
    routes: Vec<Route>,
}

/// Logins at one place.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    logins: u64,
    /// Nothing but a redirect is a success of any of these applications.
    redirects: u64,
}

/// The application with the most logins in a sample, and the names and prefixes of the others. Where a scanner asks, no login
/// succeeds.
fn known_application<'r>(
    sample: impl Iterator<Item = &'r LoggedRequest>,
    attackers: &BTreeSet<IpAddr>,
) -> (Option<KnownApplication>, Vec<String>) {
    let mut seen: BTreeMap<(usize, &'static str, &str), Seen> = BTreeMap::new();
    for request in sample.filter(|request| request.method == "POST" && !attackers.contains(&client(request))) {
        let Some(status) = request.status.filter(|status| status.is_success() || status.is_redirection()) else {
            continue;
        };
        for (number, recipe) in RECIPES.iter().enumerate() {
            let Some(LoginPlace { prefix, sign }) = recipe.login_at(request.path_and_query()) else { continue };
            let seen = seen.entry((number, sign, prefix)).or_default();
            seen.logins += 1;
            seen.redirects += u64::from(status.is_redirection());
        }
    }
    let mut found: Vec<_> = seen.into_iter().filter(|(_, seen)| seen.redirects > 0).collect();
    found.sort_by_key(|(_, seen)| Reverse(seen.logins));
    let mut found = found.into_iter().filter_map(|((number, sign, prefix), Seen { logins, .. })| {
        application(&RECIPES[number], &LoginPlace { prefix, sign }, logins)
    });
    let first = found.next();
    let mut others: Vec<String> = Vec::new();
    for other in found {
        let command = other.command();
        if first.as_ref().is_some_and(|first| first.command() != command) && !others.contains(&command) {
            others.push(command);
        }
    }
    (first, others)
}

fn application(recipe: &'static Recipe, place: &LoginPlace<'_>, logins: u64) -> Option<KnownApplication> {
    if !place.is_writable() {
        return None;
    }
    let text = recipe.routes(place);
    let whole = format!("listen: 0.0.0.0:8080\nupstream: http://127.0.0.1:8000\nroutes:\n{text}");
    let settings = config::read(Path::new("recipe"), whole, &|_| None).ok()?;
    let routes = settings.policy.routes.into_routes();
    Some(KnownApplication { recipe, prefix: place.prefix.to_owned(), logins, text, routes })
}

impl KnownApplication {
    /// The command that prints the recipe.
    fn command(&self) -> String {
        let prefix = if self.prefix.is_empty() { String::new() } else { format!(" --prefix {}", self.prefix) };
        format!("portcullis recipe {}{prefix}", self.recipe.name)
    }
}
