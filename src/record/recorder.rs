//! The sinks as one configuration names them: each event finds its counters by position.

use std::array;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use http::StatusCode;
use prometheus_client::metrics::counter::Counter;

use super::Event;
use super::Forwarded;
use super::Happening;
use super::Herald;
use super::LineWriter;
use super::LogFormat;
use super::LogSettings;
use super::Meaning;
use super::Metrics;
use super::Ruling;
use super::Sinks;
use super::Subject;
use super::access_log;
use super::happening::Kind;
use super::histogram::Histogram;
use super::notify::Desk;
use super::notify::Desks;
use crate::clock;
use crate::clock::Clock;
use crate::decision::Policy;
use crate::decision::conclude::LimitReport;
use crate::key::KeyHash;
use crate::limit::Action;
use crate::limit::LimitId;
use crate::outcome::Outcome;
use crate::route::RouteId;
use crate::route::UpstreamId;

/// Tells the sinks about requests, in the names of one configuration.
#[derive(Debug)]
pub struct Recorder {
    metrics: Arc<Metrics>,
    herald: Arc<Herald>,
    clock: Clock,
    /// `None`: requests are not logged.
    log: Option<RequestLog>,
    /// Those that took no route first, then by `RouteId`.
    routes: Vec<RouteMeter>,
    /// By `LimitId`.
    limits: Vec<LimitMeter>,
    /// By `UpstreamId`.
    upstreams: Vec<UpstreamMeter>,
}

/// Where lines of requests go, and how they look.
#[derive(Debug)]
struct RequestLog {
    lines: Arc<LineWriter>,
    format: LogFormat,
    /// Whether they have the query.
    query: bool,
}

/// An upstream and its servers as the configuration writes them.
#[derive(Clone, Debug)]
pub struct ServerNames {
    pub upstream: Arc<str>,
    pub servers: Vec<Arc<str>>,
}

impl Recorder {
    /// `upstreams` are in the order of `UpstreamId`.
    pub fn new(
        sinks: &Sinks,
        settings: &LogSettings,
        policy: &Policy,
        upstreams: impl IntoIterator<Item = ServerNames>,
    ) -> Self {
        let metrics = &sinks.metrics;
        let format = settings.format.unwrap_or(sinks.default_format);
        let names =
            [Arc::from(NO_ROUTE)].into_iter().chain(policy.routes.routes.iter().map(|route| route.name.clone()));
        Self {
            log: settings.requests.then(|| RequestLog {
                lines: Arc::clone(&sinks.lines),
                format,
                query: settings.query,
            }),
            routes: names.map(|name| RouteMeter::new(metrics, name)).collect(),
            limits: policy.limits.iter().map(|limit| LimitMeter::new(&limit.name, &limit.then.action)).collect(),
            herald: Arc::clone(&sinks.herald),
            clock: Clock::system(),
            upstreams: upstreams.into_iter().map(|names| UpstreamMeter::new(metrics, names)).collect(),
            metrics: Arc::clone(metrics),
        }
    }

    /// The limits of `policy` tell the channels that they name.
    #[must_use]
    pub fn with_channels(mut self, policy: &Policy, desks: &Desks) -> Self {
        for (meter, limit) in self.limits.iter_mut().zip(&policy.limits) {
            // A shadow tells nobody.
            let named = limit.then.notify.iter().filter(|_| !limit.shadow);
            meter.desks = named.filter_map(|channel| desks.get(*channel)).map(Arc::clone).collect();
        }
        self
    }

    /// Whether anybody wants to know what this limit, or a list, does to a request.
    pub fn is_heard(&self, limit: Option<LimitId>) -> bool {
        self.herald.is_heard() || limit.is_some_and(|limit| !self.limits[usize::from(limit.0)].desks.is_empty())
    }

    /// Whether requests are lines.
    pub fn logs_requests(&self) -> bool {
        self.log.is_some()
    }

    /// Whether anybody is told which key of this limit a request has.
    pub fn wants(&self, limit: LimitId) -> bool {
        self.logs_requests() || self.is_heard(Some(limit))
    }

    /// Counts a request, logs it, and tells of it where something was done to it. Waits for nobody.
    pub fn record(&self, event: &Event<'_>) {
        self.count(event);
        self.tell_of(event);
        if let Some(RequestLog { lines, format, query }) = &self.log {
            let named = access_log::Named {
                route: event.route.map(|route| &*self.route(Some(route)).name),
                upstream: event.forwarded.map(|forwarded| &*self.upstream(forwarded.upstream).name),
                query: event.query.filter(|_| *query),
                limits: &self.limits,
            };
            lines.append(|line| access_log::write(line, *format, clock::wall(), event, &named));
        }
    }

    fn tell_of(&self, event: &Event<'_>) {
        let kind = match event.decision {
            Ruling::Allowed | Ruling::Error => return,
            Ruling::Denied | Ruling::Banned | Ruling::Listed | Ruling::Tarpitted | Ruling::Challenged => Kind::Denial,
            Ruling::Delayed => Kind::Delay,
        };
        let limit = event.subject.map(|subject| subject.limit);
        if !self.is_heard(limit) {
            return;
        }
        let told = Happening::of(kind);
        let told = Happening {
            limit: match limit {
                Some(limit) => Some(Arc::clone(&self.limits[usize::from(limit.0)].name)),
                None => event.limit.map(Arc::from),
            },
            key: event.subject.and_then(|subject| subject.shown.as_ref()).map(|shown| shown.masked.clone()),
            client: Some(event.identity.client.address()),
            route: event.route.map(|route| Arc::clone(&self.route(Some(route)).name)),
            request_id: Some(event.request_id.into()),
            decision: Some(event.decision.as_str()),
            ban: event.ban.map(Box::from),
            ..match event.subject.and_then(|subject| subject.span) {
                Some(span) => told.lasting(span),
                None => told,
            }
        };
        let told = Arc::new(told);
        self.herald.tell(&told);
        let Some(Subject { limit, key, is_ban, is_suspect, .. }) = event.subject else { return };
        if self.limits[usize::from(limit.0)].desks.is_empty() || *is_suspect {
            return;
        }
        // Whoever is told once in a while is told of the ban, not that its first knock was denied.
        let told = if *is_ban { Arc::new(Happening { event: Kind::Ban, ..Happening::clone(&told) }) } else { told };
        self.notify(*limit, *key, &told);
    }

    /// Tells the channels of a limit.
    fn notify(&self, limit: LimitId, key: Option<KeyHash>, told: &Arc<Happening>) {
        let LimitMeter { name, desks, .. } = &self.limits[usize::from(limit.0)];
        for desk in desks {
            desk.tell(told, name, key.unwrap_or(KeyHash(0)), self.clock.now());
        }
    }

    /// Tells the channels of a limit of a ban that began after the request was answered that it began with.
    pub fn tell_of_ban(
        &self,
        limit: LimitId,
        key: KeyHash,
        shown: Vec<(String, String)>,
        client: IpAddr,
        left: Duration,
    ) {
        let told = Happening {
            limit: Some(Arc::clone(&self.limits[usize::from(limit.0)].name)),
            key: Some(shown),
            client: Some(client),
            decision: Some(Ruling::Banned.as_str()),
            ..Happening::of(Kind::Ban).lasting(left)
        };
        self.notify(limit, Some(key), &Arc::new(told));
    }

    fn count(&self, event: &Event<'_>) {
        let route = self.route(event.route);
        route.requests(&self.metrics, event.decision, event.status).inc();
        route.request_duration.observe(event.duration);
        if let Some(meaning) = event.meaning {
            route.outcomes(&self.metrics, meaning).inc();
        }
        if let Some(deciding) = event.deciding {
            route.decision_duration.observe(deciding);
        }
        for report in event.limits {
            self.limits[usize::from(report.limit.0)].decisions(&self.metrics, report).inc();
        }
        if let Some(forwarded) = event.forwarded {
            self.upstream(forwarded.upstream).count(&self.metrics, forwarded);
        }
    }

    fn route(&self, route: Option<RouteId>) -> &RouteMeter {
        &self.routes[route.map_or(0, |id| usize::from(id.0) + 1)]
    }

    fn upstream(&self, upstream: UpstreamId) -> &UpstreamMeter {
        &self.upstreams[usize::from(upstream.0)]
    }
}

/// How requests that took no route are labelled.
const NO_ROUTE: &str = "none";

/// The counters of one route. Those that were never added to do not exist, so that nobody reads rows of zeros.
#[derive(Debug)]
struct RouteMeter {
    name: Arc<str>,
    /// By decision and class of the status.
    requests: [[OnceLock<Counter>; STATUS_CLASSES.len()]; Ruling::ALL.len()],
    /// By meaning.
    outcomes: [OnceLock<Counter>; Outcome::ALL.len() + 1],
    request_duration: Histogram,
    decision_duration: Histogram,
}

const STATUS_CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

impl RouteMeter {
    fn new(metrics: &Metrics, name: Arc<str>) -> Self {
        Self {
            requests: array::from_fn(|_| array::from_fn(|_| OnceLock::new())),
            outcomes: array::from_fn(|_| OnceLock::new()),
            request_duration: metrics.request_duration(&name),
            decision_duration: metrics.decision_duration(&name),
            name,
        }
    }

    fn requests(&self, metrics: &Metrics, decision: Ruling, status: Option<StatusCode>) -> &Counter {
        let class = status.map_or(0, |status| usize::from(status.as_u16() / 100).min(5));
        self.requests[decision as usize][class]
            .get_or_init(|| metrics.requests(&self.name, decision.as_str(), STATUS_CLASSES[class]))
    }

    fn outcomes(&self, metrics: &Metrics, meaning: Meaning) -> &Counter {
        let position = match meaning {
            Meaning::Known(outcome) => outcome as usize,
            Meaning::Unknown => Outcome::ALL.len(),
        };
        self.outcomes[position].get_or_init(|| metrics.outcomes(&self.name, meaning.as_str()))
    }
}

/// The counters of one limit.
#[derive(Debug)]
pub(super) struct LimitMeter {
    pub(super) name: Arc<str>,
    /// What it says of those beyond it.
    denied: &'static str,
    /// By whether it is a shadow, and whether it denied.
    decisions: [[OnceLock<Counter>; 2]; 2],
    /// Whom it tells.
    desks: Vec<Arc<Desk>>,
}

impl LimitMeter {
    pub(super) fn new(name: &Arc<str>, action: &Action) -> Self {
        let denied = match action {
            Action::Deny(_) => "denied",
            Action::Delay(_) => "delayed",
            Action::Tarpit(_) => "tarpitted",
            Action::Ban(_) => "banned",
            Action::Challenge => "challenged",
        };
        let decisions = array::from_fn(|_| array::from_fn(|_| OnceLock::new()));
        Self { name: Arc::clone(name), denied, decisions, desks: Vec::new() }
    }

    fn decisions(&self, metrics: &Metrics, report: &LimitReport) -> &Counter {
        let decision = match (report.shadow, report.denied) {
            (false, false) => "allowed",
            (false, true) => self.denied,
            (true, false) => "shadow_allowed",
            (true, true) => "shadow_denied",
        };
        self.decisions[usize::from(report.shadow)][usize::from(report.denied)]
            .get_or_init(|| metrics.limit_decisions(&self.name, decision))
    }
}

/// The counters of one upstream's servers.
#[derive(Debug)]
struct UpstreamMeter {
    name: Arc<str>,
    /// A handful at most: looking through them is quicker than hashing a name.
    servers: Vec<(Arc<str>, Counter)>,
}

impl UpstreamMeter {
    fn new(metrics: &Metrics, names: ServerNames) -> Self {
        let ServerNames { upstream, servers } = names;
        let counters = servers.into_iter().map(|server| {
            let counter = metrics.upstream_requests(&upstream, &server);
            (server, counter)
        });
        Self { servers: counters.collect(), name: upstream }
    }

    fn count(&self, metrics: &Metrics, forwarded: Forwarded<'_>) {
        let server = forwarded.server.unwrap_or_default();
        if let Some((_, counter)) = self.servers.iter().find(|(name, _)| **name == *server) {
            counter.inc();
        }
        if let Some(cause) = forwarded.failure {
            metrics.upstream_errors(&self.name, server, cause).inc();
        }
        for (server, cause) in forwarded.passed {
            metrics.upstream_errors(&self.name, server, cause).inc();
        }
    }
}

#[cfg(test)]
mod tests;
