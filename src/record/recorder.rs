//! Records requests under the names of one configuration.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::access_log::LineContext;
use super::advice::{NearPaths, UnlimitedLogins};
use super::attacks::Attacks;
use super::event::{EventKind, EventSubject};
use super::heavy_keys::KeyTable;
use super::kept_requests::{DecisionFacts, KeptRequest, KeptRequests, PolicyFacts};
use super::metrics::{CountedRoute, LimitMetrics, RouteMetrics, ShownRoutes, UpstreamMetrics};
use super::notify::{WebhookChannel, WebhookChannels};
use super::spans::{RequestTrace, SpanNames, Tracer};
use super::{
    AppliedLimit, DecisionLabel, Event, EventBus, LineWriter, LogFormat, LogSettings, Metrics, RequestRecord,
    RouteSeries, ServerNames, Sinks, access_log,
};
use crate::rules::decision::Policy;
use crate::rules::key::{KeyHash, Selector};
use crate::rules::limit::{ChannelId, Limit, LimitId};
use crate::rules::outcome::Outcome;
use crate::rules::route::{RouteId, UpstreamId};
use crate::words::clock;
use crate::words::clock::{Clock, Timestamp};

/// Hands each request to the request log, the metrics, the event bus and the webhooks. Counters are found by position.
#[derive(Debug)]
pub struct Recorder {
    metrics: Arc<Metrics>,
    event_bus: Arc<EventBus>,
    clock: Clock,
    /// `None`: requests are not logged.
    log: Option<RequestLog>,
    /// First the metrics of requests without a route, then by `RouteId`.
    routes: Vec<RouteMetrics>,
    /// Counts requests on routes without series of their own once more.
    other_routes: RouteMetrics,
    route_series: RouteSeries,
    shown_routes: Arc<ShownRoutes>,
    /// By `LimitId`.
    limits: Vec<LimitMetrics>,
    /// The channels that each limit notifies, by `LimitId`.
    channels: Vec<Vec<Arc<WebhookChannel>>>,
    /// Whom their messages concern, by `LimitId`.
    subjects: Vec<Arc<EventSubject>>,
    /// The channels that hear of sign-ins after failures, by `RouteId`.
    sign_in_channels: Vec<Vec<Arc<WebhookChannel>>>,
    attacks: Arc<Attacks>,
    kept_requests: Arc<KeptRequests>,
    /// Counts requests by client.
    clients: Arc<KeyTable>,
    /// Counts requests by the keys of each limit, by `LimitId`.
    keys: Vec<Arc<KeyTable>>,
    /// The facts of the policy for kept requests.
    policy_facts: Arc<PolicyFacts>,
    /// By `UpstreamId`.
    upstreams: Vec<UpstreamMetrics>,
    /// `None`: no request is traced.
    tracer: Option<Arc<Tracer>>,
    unlimited_logins: UnlimitedLogins,
    near_paths: NearPaths,
    /// By `LimitId`: whether lines have the hash of its key.
    logged_keys: Vec<bool>,
}

/// Where the lines of requests go, and in which format.
#[derive(Debug)]
struct RequestLog {
    lines: Arc<LineWriter>,
    format: LogFormat,
    /// Whether lines have the query.
    query: bool,
    /// Stands in each line.
    gateway: Option<Arc<str>>,
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
        let format = settings.format_or(sinks.default_format);
        let named = policy.routes.all().iter().map(|route| CountedRoute::Named(Arc::clone(&route.name)));
        let routes: Vec<RouteMetrics> =
            [CountedRoute::NoRoute].into_iter().chain(named).map(RouteMetrics::new).collect();
        for route in policy.routes.all().iter().filter(|route| route.outcome.is_some()) {
            metrics.begin_outcomes(&route.name);
        }
        // Requests on no route are not waited for: every gateway has their series.
        routes[0].durations(metrics);
        Self {
            log: settings.requests.then(|| RequestLog {
                lines: Arc::clone(&sinks.lines),
                format,
                query: settings.query,
                gateway: settings.gateway.clone(),
            }),
            routes,
            other_routes: RouteMetrics::new(CountedRoute::Others),
            route_series: RouteSeries::All,
            shown_routes: Arc::default(),
            limits: policy.limits.iter().map(|limit| LimitMetrics::new(&limit.name)).collect(),
            channels: Vec::new(),
            subjects: Vec::new(),
            sign_in_channels: Vec::new(),
            attacks: Arc::clone(&sinks.attacks),
            tracer: None,
            unlimited_logins: UnlimitedLogins::new(policy),
            near_paths: NearPaths::new(policy),
            logged_keys: policy.limits.iter().map(|limit| settings.requests && has_login_name(limit)).collect(),
            event_bus: Arc::clone(&sinks.event_bus),
            clock: Clock::system(),
            kept_requests: Arc::clone(&sinks.kept_requests),
            clients: Arc::clone(sinks.key_tables.clients()),
            keys: policy.limits.iter().map(|limit| sinks.key_tables.limit(&limit.name)).collect(),
            policy_facts: Arc::new(PolicyFacts::of(policy)),
            upstreams: upstreams.into_iter().map(|names| UpstreamMetrics::new(metrics, names)).collect(),
            metrics: Arc::clone(metrics),
        }
    }

    /// Sets the webhook channels that the limits and the sign-ins of `policy` notify. A shadow limit notifies none.
    #[must_use]
    pub fn with_channels(mut self, policy: &Policy, channels: &WebhookChannels) -> Self {
        let found = |ids: &[ChannelId]| ids.iter().filter_map(|id| channels.get(*id)).map(Arc::clone).collect();
        let of_limit = |limit: &Limit| found(if limit.shadow { &[] } else { &limit.then.notify });
        self.channels = policy.limits.iter().map(of_limit).collect();
        let subject = |(place, channels): (usize, &Vec<_>)| match u16::try_from(place) {
            Ok(place) if !channels.is_empty() => Arc::new(EventSubject::of_limit(policy, LimitId(place))),
            _ => Arc::default(),
        };
        self.subjects = self.channels.iter().enumerate().map(subject).collect();
        self.sign_in_channels = policy.routes.all().iter().map(|route| found(&route.sign_in_channels())).collect();
        self
    }

    /// Sets which routes of `policy` have series of their own.
    #[must_use]
    pub fn with_route_series(mut self, policy: &Policy, series: RouteSeries) -> Self {
        self.shown_routes = Arc::new(series.shown(policy.routes.all().iter().map(|route| &route.name)));
        self.route_series = series;
        self
    }

    /// Which routes a scrape shows by their names.
    pub fn shown_routes(&self) -> &Arc<ShownRoutes> {
        &self.shown_routes
    }

    /// Sets who traces requests.
    #[must_use]
    pub fn with_tracer(mut self, tracer: Option<Arc<Tracer>>) -> Self {
        self.tracer = tracer;
        self
    }

    /// `None`: no request is traced.
    pub fn tracer(&self) -> Option<&Arc<Tracer>> {
        self.tracer.as_ref()
    }

    /// Queues the spans of a request that ended at `at`. `server_scheme`: how its server was reached. Does not wait.
    pub fn end_trace(
        &self,
        trace: &RequestTrace,
        request: &RequestRecord<'_>,
        server_scheme: &'static str,
        at: Timestamp,
    ) {
        let Some(tracer) = &self.tracer else { return };
        let names = SpanNames {
            route: request.route.map(|route| self.route(Some(route)).route.label()),
            upstream: request.upstream.map(|upstream| &*self.upstream(upstream.id).name),
            server_scheme,
        };
        tracer.end(trace, request, names, at);
    }

    /// Whether the audit trail, the event stream or a webhook would report what this limit, or a list, does.
    pub fn has_consumers_for(&self, limit: Option<LimitId>) -> bool {
        self.event_bus.has_consumers() || limit.is_some_and(|limit| !self.channels_of(limit).is_empty())
    }

    /// Counts a forwarded request in which a peer that is no trusted proxy names its client by this header.
    pub fn count_untrusted_forwarding(&self, peer: IpAddr, header: &str) {
        self.metrics.untrusted_forwarding().count(peer, header);
    }

    /// A proxy has asked about a request of this route, which passed, or about descriptors. The answer will not be seen.
    pub fn mark_answers_unseen(&self, route: Option<RouteId>) {
        self.route(route).has_unseen_answers.store(true, Ordering::Relaxed);
    }

    /// Whether a proxy has asked about requests of this route under this configuration.
    pub fn has_unseen_answers(&self, route: Option<RouteId>) -> bool {
        self.route(route).has_unseen_answers.load(Ordering::Relaxed)
    }

    /// The logins so far under this configuration that met no limit on logins.
    pub fn unlimited_logins(&self) -> &UnlimitedLogins {
        &self.unlimited_logins
    }

    /// What is asked for where a limited route has had no request under this configuration.
    pub fn near_paths(&self) -> &NearPaths {
        &self.near_paths
    }

    pub fn logs_requests(&self) -> bool {
        self.log.is_some()
    }

    /// Whether each line of a request shows which key of this limit it has: one with a login name, which the line has nowhere else.
    pub fn logs_key_of(&self, limit: LimitId) -> bool {
        self.logged_keys[usize::from(limit.0)]
    }

    /// Whether the log or an event would show which key of this limit a request has.
    pub fn needs_key(&self, limit: LimitId) -> bool {
        self.logs_requests() || self.has_consumers_for(Some(limit))
    }

    /// The counts of the keys of a limit.
    pub fn keys_of(&self, limit: LimitId) -> &KeyTable {
        &self.keys[usize::from(limit.0)]
    }

    /// The counts of clients.
    pub fn clients(&self) -> &KeyTable {
        &self.clients
    }

    /// Counts a request, logs it, and reports what a limit or a list did to it. Does not wait.
    pub fn record(&self, request: &RequestRecord<'_>) {
        self.count(request);
        self.unlimited_logins.count(request);
        self.near_paths.count(request);
        self.note_sign_in(request);
        self.report(request);
        if let Some(RequestLog { lines, format, query, gateway }) = &self.log {
            let context = LineContext {
                route: request.route.map(|route| self.route(Some(route)).route.label()),
                upstream: request.upstream.map(|upstream| &*self.upstream(upstream.id).name),
                query: request.query.filter(|_| *query),
                gateway: gateway.as_deref(),
                limits: &self.limits,
            };
            lines.append(|line| access_log::write(line, *format, clock::wall(), request, &context));
        }
    }

    /// Counts a failure under each key, and notes who signed in or failed.
    fn note_sign_in(&self, request: &RequestRecord<'_>) {
        let (Some(sign_in), Some(route), Some(outcome)) = (request.sign_in, request.route, request.outcome) else {
            return;
        };
        let now = clock::wall();
        if outcome.outcome() == Some(Outcome::Failure) {
            if let Some((client, key)) = &sign_in.client {
                self.clients.count_failed(*client, now, key);
            }
            for (limit, hash, key) in &sign_in.keys {
                self.keys_of(*limit).count_failed(*hash, now, key);
            }
        }
        if let Some(name) = self.route(Some(route)).route.name() {
            let channels = self.sign_in_channels.get(usize::from(route.0)).map_or(&[][..], Vec::as_slice);
            self.attacks.note(request, &name, channels, now);
        }
    }

    /// Begins the story of a request that was just denied or held.
    pub fn begin_kept_request(&self, facts: DecisionFacts) -> Box<KeptRequest> {
        KeptRequest::begin(&self.policy_facts, facts)
    }

    /// Keeps the story of a request that was denied or held, and has ended. Does not wait.
    pub fn keep_request(&self, mut story: Box<KeptRequest>, request: &RequestRecord<'_>) {
        story.complete(request);
        self.kept_requests.keep(story);
    }

    /// Publishes the event of a denied or delayed request, and notifies the channels of its limit.
    fn report(&self, request: &RequestRecord<'_>) {
        let Some(kind) = event_kind(request.decision) else { return };
        let has_channels = request.applied_limit.is_some_and(|applied| !self.channels_of(applied.limit).is_empty());
        let is_streamed = self.event_bus.stream().takes_request();
        if !is_streamed && !has_channels && !self.event_bus.has_trail() {
            return;
        }
        let event = Arc::new(self.event(kind, request));
        self.event_bus.publish_request(&event, is_streamed);
        let Some(AppliedLimit { limit, key, is_ban, is_suspect, .. }) = request.applied_limit else { return };
        if self.channels_of(*limit).is_empty() || *is_suspect {
            return;
        }
        // A channel gets one notification in a while: the ban matters more than the denial that began it.
        let event = if *is_ban { Arc::new(Event { kind: EventKind::Ban, ..Event::clone(&event) }) } else { event };
        self.notify(*limit, *key, &event);
    }

    fn event(&self, kind: EventKind, request: &RequestRecord<'_>) -> Event {
        let applied = request.applied_limit;
        let event = Event::new(kind);
        Event {
            limit: match applied {
                Some(applied) => Some(Arc::clone(self.limit_name(applied.limit))),
                None => request.limit.map(Arc::from),
            },
            list: request.list.map(Box::from),
            key: applied.and_then(|applied| applied.masked_key.as_ref()).map(|key| key.parts.clone()),
            client: Some(request.identity.client.address()),
            route: request.route.and_then(|route| self.route(Some(route)).route.name()),
            request_id: Some(request.request_id.into()),
            decision: Some(request.decision.as_str()),
            ban: request.ban.map(Box::from),
            ..match applied.and_then(|applied| applied.span) {
                Some(span) => event.lasting(span),
                None => event,
            }
        }
    }

    /// Notifies the channels of a limit.
    fn notify(&self, limit: LimitId, key: Option<KeyHash>, event: &Arc<Event>) {
        let (Some(subject), key) = (self.subjects.get(usize::from(limit.0)), key.unwrap_or(KeyHash(0))) else { return };
        for channel in self.channels_of(limit) {
            channel.notify(event, subject, self.limit_name(limit), key, self.clock.now());
        }
    }

    /// Notifies the channels of a limit of a ban that began after its request was answered.
    pub fn notify_of_ban(
        &self,
        limit: LimitId,
        key: KeyHash,
        masked_key: Vec<(String, String)>,
        client: Option<IpAddr>,
        left: Duration,
    ) {
        let event = Event {
            limit: Some(Arc::clone(self.limit_name(limit))),
            key: Some(masked_key),
            client,
            decision: Some(DecisionLabel::Banned.as_str()),
            ..Event::new(EventKind::Ban).lasting(left)
        };
        self.notify(limit, Some(key), &Arc::new(event));
    }

    fn count(&self, request: &RequestRecord<'_>) {
        self.count_on_route(request);
        for report in request.limits {
            self.limits[usize::from(report.limit.0)].count(&self.metrics, *report);
        }
        if let Some(upstream) = request.upstream {
            self.upstream(upstream.id).count(&self.metrics, upstream);
        }
    }

    fn count_on_route(&self, request: &RequestRecord<'_>) {
        let own = self.route(request.route);
        let has_series = request.route.is_none_or(|id| self.route_series.has_own(id.0.into()));
        let others = (!has_series).then_some(&self.other_routes);
        for route in [own].into_iter().chain(others) {
            route.requests(&self.metrics, request.decision, request.status).inc();
            if let Some(outcome) = request.outcome {
                route.outcomes(&self.metrics, outcome).inc();
            }
        }
        let durations = others.unwrap_or(own).durations(&self.metrics);
        durations.request.observe(request.duration);
        if let Some(duration) = request.decision_duration {
            durations.decision.observe(duration);
        }
    }

    fn limit_name(&self, limit: LimitId) -> &Arc<str> {
        &self.limits[usize::from(limit.0)].name
    }

    fn channels_of(&self, limit: LimitId) -> &[Arc<WebhookChannel>] {
        self.channels.get(usize::from(limit.0)).map_or(&[], Vec::as_slice)
    }

    fn route(&self, route: Option<RouteId>) -> &RouteMetrics {
        &self.routes[route.map_or(0, |id| usize::from(id.0) + 1)]
    }

    fn upstream(&self, upstream: UpstreamId) -> &UpstreamMetrics {
        &self.upstreams[usize::from(upstream.0)]
    }
}

fn has_login_name(limit: &Limit) -> bool {
    limit.key.parts.iter().flat_map(|part| part.selector.choices()).any(Selector::is_login_name)
}

/// `None`: neither a limit nor a list acted on the request.
fn event_kind(decision: DecisionLabel) -> Option<EventKind> {
    match decision {
        DecisionLabel::Delayed => Some(EventKind::Delay),
        _ => decision.is_denial().then_some(EventKind::Denial),
    }
}

#[cfg(test)]
mod tests;
