//! Every metric, one row each: its name, its help, its labels, and where its value is. Counters are named without `_total`,
//! which the exposition adds.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::TypedMetric;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Metric, Registry};

use super::{Histogram, ShownRoutes};
use crate::record::metrics::gauges;
use crate::record::metrics::gauges::{GaugeRow, counter, gauge, one, rows};
use crate::record::metrics::route::{OfRoute, RouteFamily};
use crate::words::clock;
use crate::words::clock::Timestamp;

/// Makes a struct with a field for each row, and registers them.
macro_rules! counted {
    ($($field:ident: $metric:ty = $name:literal, $help:literal;)+) => {
        /// The metrics that are added to, or set, when something happens.
        #[derive(Debug)]
        pub(super) struct Counted {
            $(pub(super) $field: $metric,)+
        }

        impl Counted {
            pub(super) fn register(registry: &mut Registry) -> Self {
                Self { $($field: register(registry, $name, $help),)+ }
            }
        }
    };
}

counted! {
    requests: RouteFamily<RequestLabels, Counter> =
        "portcullis_requests", "Requests by route, decision and class of the status answered";
    limit_decisions: Family<LimitLabels, Counter> = "portcullis_limit_decisions", "Decisions of each limit";
    outcomes: RouteFamily<OutcomeLabels, Counter> =
        "portcullis_outcomes", "Outcomes of the applications' answers; unknown: there was no answer, or it does not say";
    signed_in_after_failures: RouteFamily<RouteLabels, Counter> =
        "portcullis_signed_in_after_failures", "Sign-ins to accounts that failed several times within the hour, by other clients than known ones";
    request_duration: RouteFamily<RouteLabels, Histogram> =
        "portcullis_request_duration_seconds",
        "From the head of a request to the end of its answer, the application included";
    decision_duration: RouteFamily<RouteLabels, Histogram> =
        "portcullis_decision_duration_seconds",
        "From reading the keys of a request to the decision, the store included";
    upstream_requests: Family<ServerLabels, Counter> =
        "portcullis_upstream_requests", "Requests sent to each server of an upstream";
    upstream_errors: Family<FailureLabels, Counter> =
        "portcullis_upstream_errors", "Requests that a server did not answer, by cause";
    store_errors: Family<StoreLabels, Counter> = "portcullis_store_errors", "Decisions that the store did not answer";
    store_down: Family<StoreLabels, Counter> = "portcullis_store_down", "How often a server of the store went down";
    overload: Counter =
        "portcullis_overload", "Requests refused with 503 because this gateway was too busy to ask the store";
    store_leased: Family<StoreLabels, Counter> =
        "portcullis_store_leased", "Decisions without a call to Redis, paid with units that this gateway holds";
    store_round_trip: Family<StoreLabels, Histogram> =
        "portcullis_store_round_trip_seconds", "Time that Redis takes for a decision, the network included";
    reloads: Family<ReloadLabels, Counter> =
        "portcullis_config_reloads", "Reloads of the configuration, by result";
    last_reload_success: Gauge =
        "portcullis_config_last_reload_success", "1 while the configuration on disk is in force";
    notifications: Family<NotificationLabels, Counter> =
        "portcullis_notifications",
        "Notifications of each webhook: delivered, failed, dropped because the queue was full, or suppressed by `every`";
    audit_dropped: Family<PlaceLabels, Counter> =
        "portcullis_audit_dropped_entries",
        "Audit events that were dropped, by place: file, redis_stream, sqlite or crowdsec";
    spans: Family<SpanLabels, Counter> =
        "portcullis_trace_spans",
        "Spans: exported, failed because the collector did not take them, or dropped because the queue was full";
    process_start_time: Gauge<f64, AtomicU64> =
        "process_start_time_seconds", "When this process started, since 1970";
}

fn register<M: Metric + Clone + Default + TypedMetric>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

// What is read at the moment of a scrape, and the metric of each.

/// What the owner of the metrics reads for a scrape.
#[derive(Clone, Debug, Default)]
pub struct Gauges {
    pub connections: usize,
    /// Connections that were closed at once, because their listener does not take their peer. Only grows.
    pub rejected_connections: u64,
    /// Requests that are delayed or tarpitted.
    pub held: usize,
    /// Keys and addresses that are banned.
    pub bans: usize,
    pub sessions: usize,
    pub store: &'static str,
    pub store_up: bool,
    pub store_keys: usize,
    /// Which part of every limit this gateway grants while a shared store is away, from 0 to 1.
    pub store_part: Option<f64>,
    /// Upstream, server, and whether the server is healthy.
    pub servers: Vec<(Arc<str>, Arc<str>, bool)>,
    pub dropped_lines: u64,
    /// The name of this gateway.
    pub gateway: Arc<String>,
    /// Which routes have series of their own.
    pub routes: Arc<ShownRoutes>,
    /// The lists that follow a source.
    pub lists: Vec<ListGauge>,
    /// Each level of the verdict, and whether it holds.
    pub verdict: Vec<(&'static str, bool)>,
    /// Each limit without a key, and whether it or a ban of it locks its routes for everyone.
    pub lockdowns: Vec<(String, bool)>,
    /// For each name of the certificates in use, the Unix time at which its certificate expires.
    pub certificates: Vec<(String, i64)>,
    /// No metric shows them.
    pub faults: Vec<Fault>,
}

/// How a list that follows a source is.
#[derive(Clone, Debug)]
pub struct ListGauge {
    pub name: Arc<str>,
    /// The URL of the source.
    pub source: String,
    /// How many decisions it has from there.
    pub entries: usize,
    /// When the source answered last.
    pub answered: Option<Timestamp>,
    /// Why the last question was not answered.
    pub failure: Option<Arc<str>>,
}

impl ListGauge {
    /// Whether the source answers.
    pub fn is_up(&self) -> bool {
        self.answered.is_some() && self.failure.is_none()
    }

    /// How long ago the source answered last; `None`: it never did.
    pub(super) fn age(&self, now: Timestamp) -> Option<Duration> {
        Some(now.since(self.answered?))
    }
}

// What does not work although requests are served, for those who ask how the gateway is.

/// Something of this gateway that does not work, and that no request shows.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fault {
    /// `log`, `audit`, `notify`, `snapshot`, `connections` or `redis`.
    pub about: &'static str,
    /// What does not work, why, and what that means.
    pub sentence: String,
    pub since: Timestamp,
}

/// A writer that has nothing to write is not known to work or to fail.
const FAILURE_HOLDS: Duration = Duration::from_secs(3600);

/// The writers of records, each as long as it runs.
#[derive(Debug, Default)]
pub(super) struct Writers(Mutex<Vec<Weak<WriterHealth>>>);

/// Whether a writer of records could write last.
#[derive(Debug)]
pub(in crate::record) struct WriterHealth {
    about: &'static str,
    failure: Mutex<Option<Failure>>,
}

#[derive(Debug)]
struct Failure {
    fault: Fault,
    /// When it was seen last.
    seen: Timestamp,
}

impl Writers {
    pub(super) fn begin(&self, about: &'static str) -> Arc<WriterHealth> {
        let begun = Arc::new(WriterHealth { about, failure: Mutex::default() });
        let mut writers = self.0.lock();
        writers.retain(|writer| writer.strong_count() > 0);
        writers.push(Arc::downgrade(&begun));
        begun
    }

    pub(super) fn faults(&self, now: Timestamp) -> Vec<Fault> {
        let writers = self.0.lock();
        let faults = writers.iter().filter_map(Weak::upgrade).filter_map(|writer| {
            let failure = writer.failure.lock();
            failure
                .as_ref()
                .filter(|failure| now.since(failure.seen) < FAILURE_HOLDS)
                .map(|failure| failure.fault.clone())
        });
        faults.collect()
    }
}

impl WriterHealth {
    /// It could not write. Returns whether it could before.
    pub(in crate::record) fn failed(&self, sentence: impl FnOnce() -> String) -> bool {
        let now = clock::wall();
        let mut failure = self.failure.lock();
        if let Some(known) = &mut *failure {
            known.seen = now;
            return false;
        }
        let fault = Fault { about: self.about, sentence: sentence(), since: now };
        *failure = Some(Failure { fault, seen: now });
        true
    }

    /// It could write. Returns whether it could not before.
    pub(in crate::record) fn worked(&self) -> bool {
        self.failure.lock().take().is_some()
    }

    pub(in crate::record) fn is_failing(&self) -> bool {
        self.failure.lock().is_some()
    }
}

/// The metrics that are read at the moment of a scrape.
pub(super) const READ: &[GaugeRow] = &[
    gauge("portcullis_upstream_healthy", "1 while the server is well", &["upstream", "server"], |now| {
        rows(&now.servers, |(upstream, server, healthy)| (vec![upstream, server], (*healthy).into()))
    }),
    gauge("portcullis_store_up", "1 while the store answers", &["kind"], |now| one(&[now.store], now.store_up)),
    gauge(
        "portcullis_store_part",
        "Which part of every limit this gateway grants while the store is away, from 0 to 1",
        &["kind"],
        |now| now.store_part.map(|part| one(&[now.store], part)).unwrap_or_default(),
    ),
    gauge("portcullis_store_keys", "Keys in the store", &["kind"], |now| one(&[now.store], now.store_keys)),
    gauge("portcullis_connections", "Open connections of clients", &[], |now| one(&[], now.connections)),
    counter(
        "portcullis_rejected_connections",
        "Connections closed at once: without a PROXY header from a trusted proxy, or from a peer that may not ask for \
         decisions",
        &[],
        |now| one(&[], now.rejected_connections),
    ),
    gauge("portcullis_held_requests", "Requests held now by delay and tarpit", &[], |now| one(&[], now.held)),
    gauge("portcullis_bans", "Bans in force", &[], |now| one(&[], now.bans)),
    gauge("portcullis_sessions", "Sessions that this gateway knows", &[], |now| one(&[], now.sessions)),
    gauge(
        "portcullis_verdict",
        "Whether all is well, as status and dashboard say: 1 for the level that holds, 0 for the others",
        &["level"],
        |now| rows(&now.verdict, |(level, holds)| (vec![level], (*holds).into())),
    ),
    gauge(
        "portcullis_lockdown",
        "1 while a limit without a key, or a ban of it, locks its routes for everyone",
        &["limit"],
        |now| rows(&now.lockdowns, |(limit, holds)| (vec![limit], (*holds).into())),
    ),
    gauge(
        "portcullis_certificate_expiry_seconds",
        "The Unix time at which the certificate ends that clients are shown for a name",
        &["name"],
        |now| rows(&now.certificates, |(name, expires)| (vec![name], (*expires).into())),
    ),
    gauge("portcullis_list_entries", "Decisions in force that a list has from its source", &["list"], |now| {
        rows(&now.lists, |list| (vec![&list.name], list.entries.into()))
    }),
    gauge("portcullis_list_age_seconds", "How long ago the source of a list answered last", &["list"], |now| {
        let at = clock::wall();
        let ages: Vec<_> =
            now.lists.iter().filter_map(|list| Some((&list.name, list.age(at)?.as_secs_f64()))).collect();
        rows(&ages, |(name, age)| (vec![name], (*age).into()))
    }),
    gauge("portcullis_list_source_up", "1 while the source of a list answers", &["list"], |now| {
        rows(&now.lists, |list| (vec![&list.name], list.is_up().into()))
    }),
    gauge(
        "portcullis_access_log_dropped_lines",
        "Lines of the request log that were dropped because their reader was too slow or their file took none",
        &[],
        |now| one(&[], now.dropped_lines),
    ),
    gauge("portcullis_build_info", "The version of this process, and its name", &["version", "gateway"], |now| {
        one(&[env!("CARGO_PKG_VERSION"), &now.gateway], true)
    }),
    counter("process_cpu_seconds", "Processor time that this process has used, in all its threads", &[], |_| {
        one(&[], gauges::cpu_time().as_secs_f64())
    }),
    gauge("process_virtual_memory_bytes", "Addresses that this process has reserved", &[], |_| {
        gauges::memory().map(|memory| one(&[], memory.virtual_bytes)).unwrap_or_default()
    }),
    gauge("process_resident_memory_bytes", "Memory that this process occupies", &[], |_| {
        gauges::memory().map(|memory| one(&[], memory.resident_bytes)).unwrap_or_default()
    }),
    gauge("process_open_fds", "Open file descriptors of this process", &[], |_| {
        gauges::open_descriptors().map(|open| one(&[], open)).unwrap_or_default()
    }),
    gauge("process_max_fds", "How many file descriptors this process may open", &[], |_| {
        gauges::most_descriptors().map(|most| one(&[], most)).unwrap_or_default()
    }),
];

// The label sets of metrics that are added to.

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub(super) struct RequestLabels {
    pub(super) route: String,
    pub(super) decision: &'static str,
    pub(super) status: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub(super) struct LimitLabels {
    pub(super) limit: String,
    pub(super) decision: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub(super) struct OutcomeLabels {
    pub(super) route: String,
    pub(super) outcome: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub(super) struct RouteLabels {
    pub(super) route: String,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub(super) struct ServerLabels {
    pub(super) upstream: String,
    pub(super) server: String,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub(super) struct FailureLabels {
    pub(super) upstream: String,
    pub(super) server: String,
    pub(super) cause: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub(super) struct StoreLabels {
    pub(super) kind: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub(super) struct NotificationLabels {
    pub(super) channel: String,
    pub(super) result: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub(super) struct PlaceLabels {
    pub(super) place: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub(super) struct ReloadLabels {
    pub(super) result: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub(super) struct SpanLabels {
    pub(super) result: &'static str,
}

impl OfRoute for RequestLabels {
    fn route(&self) -> &str {
        &self.route
    }
}

impl OfRoute for OutcomeLabels {
    fn route(&self) -> &str {
        &self.route
    }
}

impl OfRoute for RouteLabels {
    fn route(&self) -> &str {
        &self.route
    }
}
