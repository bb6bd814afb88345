//! The name and help of every metric. Counters are named without `_total`, which the exposition adds.

use prometheus_client::encoding::EncodeLabelSet;

use crate::record::metrics::route::OfRoute;

pub const REQUESTS: MetricName =
    MetricName { name: "portcullis_requests", help: "Requests by route, decision and class of the status answered" };

pub const LIMIT_DECISIONS: MetricName =
    MetricName { name: "portcullis_limit_decisions", help: "Decisions of each limit" };

pub const OUTCOMES: MetricName = MetricName {
    name: "portcullis_outcomes",
    help: "Outcomes of the applications' answers; unknown: there was no answer, or it does not say",
};

pub const REQUEST_DURATION: MetricName = MetricName {
    name: "portcullis_request_duration_seconds",
    help: "From the head of a request to the end of its answer, the application included",
};

pub const DECISION_DURATION: MetricName = MetricName {
    name: "portcullis_decision_duration_seconds",
    help: "From reading the keys of a request to the decision, the store included",
};

pub const UPSTREAM_REQUESTS: MetricName =
    MetricName { name: "portcullis_upstream_requests", help: "Requests sent to each server of an upstream" };

pub const UPSTREAM_ERRORS: MetricName =
    MetricName { name: "portcullis_upstream_errors", help: "Requests that a server did not answer, by cause" };

pub const UPSTREAM_HEALTHY: MetricName =
    MetricName { name: "portcullis_upstream_healthy", help: "1 while the server gets requests" };

pub const STORE_UP: MetricName = MetricName { name: "portcullis_store_up", help: "1 while the store answers" };

pub const STORE_ERRORS: MetricName =
    MetricName { name: "portcullis_store_errors", help: "Decisions that the store did not answer" };

pub const STORE_DOWN: MetricName =
    MetricName { name: "portcullis_store_down", help: "How often a server of the store went down" };

pub const OVERLOAD: MetricName = MetricName {
    name: "portcullis_overload",
    help: "Requests refused with 503 because this gateway was too busy to ask the store",
};

pub const STORE_LEASED: MetricName = MetricName {
    name: "portcullis_store_leased",
    help: "Decisions without a call to Redis, paid with units that this gateway holds",
};

pub const STORE_ROUND_TRIP: MetricName = MetricName {
    name: "portcullis_store_round_trip_seconds",
    help: "Time that Redis takes for a decision, the network included",
};

pub const STORE_PART: MetricName = MetricName {
    name: "portcullis_store_part",
    help: "Which part of every limit this gateway grants while the store is away, from 0 to 1",
};

pub const STORE_KEYS: MetricName = MetricName { name: "portcullis_store_keys", help: "Keys in the store" };

pub const CONNECTIONS: MetricName = MetricName { name: "portcullis_connections", help: "Open connections of clients" };

pub const REJECTED_CONNECTIONS: MetricName = MetricName {
    name: "portcullis_rejected_connections",
    help: "Connections closed at once: without a PROXY header from a trusted proxy, or from a peer that may not ask for decisions",
};

pub const HELD_REQUESTS: MetricName =
    MetricName { name: "portcullis_held_requests", help: "Requests held now by delay and tarpit" };

pub const BANS: MetricName = MetricName { name: "portcullis_bans", help: "Bans in force" };

pub const SESSIONS: MetricName = MetricName { name: "portcullis_sessions", help: "Sessions that this gateway knows" };

pub const VERDICT: MetricName = MetricName {
    name: "portcullis_verdict",
    help: "Whether all is well, as status and dashboard say: 1 for the level that holds, 0 for the others",
};

pub const CONFIG_RELOADS: MetricName =
    MetricName { name: "portcullis_config_reloads", help: "Reloads of the configuration, by result" };

pub const CONFIG_LAST_RELOAD_SUCCESS: MetricName =
    MetricName { name: "portcullis_config_last_reload_success", help: "1 while the configuration on disk is in force" };

pub const CERTIFICATE_EXPIRY: MetricName = MetricName {
    name: "portcullis_certificate_expiry_seconds",
    help: "The Unix time at which the certificate ends that clients are shown for a name",
};

pub const LIST_ENTRIES: MetricName =
    MetricName { name: "portcullis_list_entries", help: "Decisions in force that a list has from its source" };

pub const LIST_SOURCE_UP: MetricName =
    MetricName { name: "portcullis_list_source_up", help: "1 while the source of a list answers" };

pub const ACCESS_LOG_DROPPED: MetricName = MetricName {
    name: "portcullis_access_log_dropped_lines",
    help: "Lines of the request log that were dropped because their reader was too slow",
};

pub const NOTIFICATIONS: MetricName = MetricName {
    name: "portcullis_notifications",
    help: "Notifications of each webhook: delivered, failed, dropped because the queue was full, or suppressed by `every`",
};

pub const AUDIT_DROPPED: MetricName = MetricName {
    name: "portcullis_audit_dropped_entries",
    help: "Audit events that were dropped, by place: file, redis_stream, sqlite or crowdsec",
};

pub const TRACE_SPANS: MetricName = MetricName {
    name: "portcullis_trace_spans",
    help: "Spans: exported, failed because the collector did not take them, or dropped because the queue was full",
};

pub const BUILD_INFO: MetricName = MetricName { name: "portcullis_build_info", help: "The version of this process" };

pub const PROCESS_START_TIME: MetricName =
    MetricName { name: "process_start_time_seconds", help: "When this process started, since 1970" };

pub const PROCESS_CPU: MetricName =
    MetricName { name: "process_cpu_seconds", help: "Processor time that this process has used, in all its threads" };

pub const PROCESS_VIRTUAL_MEMORY: MetricName =
    MetricName { name: "process_virtual_memory_bytes", help: "Addresses that this process has reserved" };

pub const PROCESS_RESIDENT_MEMORY: MetricName =
    MetricName { name: "process_resident_memory_bytes", help: "Memory that this process occupies" };

pub const PROCESS_OPEN_FDS: MetricName =
    MetricName { name: "process_open_fds", help: "Open file descriptors of this process" };

pub const PROCESS_MAX_FDS: MetricName =
    MetricName { name: "process_max_fds", help: "How many file descriptors this process may open" };

#[derive(Clone, Copy, Debug)]
pub struct MetricName {
    pub name: &'static str,
    pub help: &'static str,
}

// The label sets of metrics.

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
pub(super) struct VerdictLabels {
    pub(super) level: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub(super) struct ListLabels {
    pub(super) list: String,
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
pub(super) struct CertificateLabels {
    pub(super) name: String,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub(super) struct ReloadLabels {
    pub(super) result: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub(super) struct SpanLabels {
    pub(super) result: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub(super) struct BuildLabels {
    pub(super) version: &'static str,
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
