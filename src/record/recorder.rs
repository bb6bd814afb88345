//! The sinks as one configuration names them: each request finds its counters by position.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::AppliedLimit;
use super::DecisionLabel;
use super::Event;
use super::EventBus;
use super::LineWriter;
use super::LogFormat;
use super::LogSettings;
use super::Metrics;
use super::RequestRecord;
use super::ServerNames;
use super::Sinks;
use super::access_log;
use super::event::EventKind;
use super::meters::LimitMeter;
use super::meters::RouteMeter;
use super::meters::UpstreamMeter;
use super::notify::WebhookChannels;
use crate::clock;
use crate::clock::Clock;
use crate::decision::Policy;
use crate::key::KeyHash;
use crate::limit::LimitId;
use crate::route::RouteId;
use crate::route::UpstreamId;

/// Tells the sinks about requests, in the names of one configuration.
#[derive(Debug)]
pub struct Recorder {
    metrics: Arc<Metrics>,
    event_bus: Arc<EventBus>,
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
            event_bus: Arc::clone(&sinks.event_bus),
            clock: Clock::system(),
            upstreams: upstreams.into_iter().map(|names| UpstreamMeter::new(metrics, names)).collect(),
            metrics: Arc::clone(metrics),
        }
    }

    /// The limits of `policy` tell the channels that they name.
    #[must_use]
    pub fn with_channels(mut self, policy: &Policy, channels: &WebhookChannels) -> Self {
        for (meter, limit) in self.limits.iter_mut().zip(&policy.limits) {
            // A shadow tells nobody.
            let named = limit.then.notify.iter().filter(|_| !limit.shadow);
            meter.channels = named.filter_map(|channel| channels.get(*channel)).map(Arc::clone).collect();
        }
        self
    }

    /// Whether anybody wants to know what this limit, or a list, does to a request.
    pub fn has_consumers_for(&self, limit: Option<LimitId>) -> bool {
        self.event_bus.has_consumers()
            || limit.is_some_and(|limit| !self.limits[usize::from(limit.0)].channels.is_empty())
    }

    /// Whether requests are lines.
    pub fn logs_requests(&self) -> bool {
        self.log.is_some()
    }

    /// Whether anybody is told which key of this limit a request has.
    pub fn needs_key(&self, limit: LimitId) -> bool {
        self.logs_requests() || self.has_consumers_for(Some(limit))
    }

    /// Counts a request, logs it, and tells of it where something was done to it. Waits for nobody.
    pub fn record(&self, request: &RequestRecord<'_>) {
        self.count(request);
        self.tell_of(request);
        if let Some(RequestLog { lines, format, query }) = &self.log {
            let named = access_log::Named {
                route: request.route.map(|route| &*self.route(Some(route)).name),
                upstream: request.upstream.map(|forwarded| &*self.upstream(forwarded.id).name),
                query: request.query.filter(|_| *query),
                limits: &self.limits,
            };
            lines.append(|line| access_log::write(line, *format, clock::wall(), request, &named));
        }
    }

    fn tell_of(&self, request: &RequestRecord<'_>) {
        let kind = match request.decision {
            DecisionLabel::Allowed | DecisionLabel::Error => return,
            DecisionLabel::Denied
            | DecisionLabel::Banned
            | DecisionLabel::Listed
            | DecisionLabel::Tarpitted
            | DecisionLabel::Challenged => EventKind::Denial,
            DecisionLabel::Delayed => EventKind::Delay,
        };
        let limit = request.applied_limit.map(|applied| applied.limit);
        if !self.has_consumers_for(limit) {
            return;
        }
        let told = Event::new(kind);
        let told = Event {
            limit: match limit {
                Some(limit) => Some(Arc::clone(&self.limits[usize::from(limit.0)].name)),
                None => request.limit.map(Arc::from),
            },
            key: request.applied_limit.and_then(|applied| applied.masked_key.as_ref()).map(|key| key.parts.clone()),
            client: Some(request.identity.client.address()),
            route: request.route.map(|route| Arc::clone(&self.route(Some(route)).name)),
            request_id: Some(request.request_id.into()),
            decision: Some(request.decision.as_str()),
            ban: request.ban.map(Box::from),
            ..match request.applied_limit.and_then(|applied| applied.span) {
                Some(span) => told.lasting(span),
                None => told,
            }
        };
        let told = Arc::new(told);
        self.event_bus.publish(&told);
        let Some(AppliedLimit { limit, key, is_ban, is_suspect, .. }) = request.applied_limit else { return };
        if self.limits[usize::from(limit.0)].channels.is_empty() || *is_suspect {
            return;
        }
        // Whoever is told once in a while is told of the ban, not that its first knock was denied.
        let told = if *is_ban { Arc::new(Event { kind: EventKind::Ban, ..Event::clone(&told) }) } else { told };
        self.notify(*limit, *key, &told);
    }

    /// Tells the channels of a limit.
    fn notify(&self, limit: LimitId, key: Option<KeyHash>, told: &Arc<Event>) {
        let LimitMeter { name, channels, .. } = &self.limits[usize::from(limit.0)];
        for channel in channels {
            channel.tell(told, name, key.unwrap_or(KeyHash(0)), self.clock.now());
        }
    }

    /// Tells the channels of a limit of a ban that began after the request was answered that it began with.
    pub fn notify_of_ban(
        &self,
        limit: LimitId,
        key: KeyHash,
        shown: Vec<(String, String)>,
        client: IpAddr,
        left: Duration,
    ) {
        let told = Event {
            limit: Some(Arc::clone(&self.limits[usize::from(limit.0)].name)),
            key: Some(shown),
            client: Some(client),
            decision: Some(DecisionLabel::Banned.as_str()),
            ..Event::new(EventKind::Ban).lasting(left)
        };
        self.notify(limit, Some(key), &Arc::new(told));
    }

    fn count(&self, request: &RequestRecord<'_>) {
        let route = self.route(request.route);
        route.requests(&self.metrics, request.decision, request.status).inc();
        route.request_duration.observe(request.duration);
        if let Some(meaning) = request.outcome {
            route.outcomes(&self.metrics, meaning).inc();
        }
        if let Some(deciding) = request.decision_duration {
            route.decision_duration.observe(deciding);
        }
        for report in request.limits {
            self.limits[usize::from(report.limit.0)].decisions(&self.metrics, report).inc();
        }
        if let Some(forwarded) = request.upstream {
            self.upstream(forwarded.id).count(&self.metrics, forwarded);
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

#[cfg(test)]
mod tests;
