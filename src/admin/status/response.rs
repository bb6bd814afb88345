//! The status as the API shows it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::SignedDuration;
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::gateways::GatewayResponse;
use super::gateways::KnownGateways;
use super::traffic::Traffic;
use crate::admin::AdminState;
use crate::admin::advice::AdviceResponse;
use crate::admin::config::LoadedConfig;
use crate::admin::config::ReloadReport;
use crate::admin::health::StoreResponse;
use crate::listen::tls::NameExpiries;
use crate::record::ListGauge;

/// How the gateway is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Status)]
pub(super) struct StatusResponse {
    /// With the commit that it was built from.
    version: &'static str,
    /// When this gateway started.
    #[schema(format = DateTime)]
    since: String,
    /// The id of the gateway that answers.
    gateway: String,
    configuration: ConfigurationResponse,
    /// The gateways on this store, the one that answers first. Those that have gone are named for an hour.
    gateways: Vec<GatewayResponse>,
    /// `false`: `last_minute` is not that of all. Either a gateway is `missing`, or Redis does not answer, so that `gateways`
    /// has only the gateway that answers.
    complete: bool,
    /// Where requests are accepted.
    listeners: Vec<String>,
    /// The certificates that are shown there, the one that ends first at the beginning.
    certificates: Vec<CertificateResponse>,
    upstreams: Vec<UpstreamResponse>,
    /// The lists that follow a source.
    lists: Vec<ListResponse>,
    store: StoreResponse,
    /// Of all gateways together, also of those that have ended or gone since: the same as in the history.
    last_minute: Traffic,
    /// What looks misconfigured at this gateway.
    advice: Vec<AdviceResponse>,
}

/// Where the configuration comes from.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Configuration)]
struct ConfigurationResponse {
    /// The file, `-` for standard input, or `the command line`.
    source: String,
    /// When the one in force was loaded.
    #[schema(format = DateTime)]
    loaded: String,
    /// Null: there was none since the start.
    #[schema(required)]
    last_reload: Option<ReloadResponse>,
}

/// How a reload ended.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Reload)]
struct ReloadResponse {
    #[schema(format = DateTime)]
    at: String,
    #[schema(inline)]
    result: ResultWord,
    /// Why the configuration of before stayed in force.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ResultWord {
    Success,
    Failure,
}

/// When a certificate ends.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Certificate)]
struct CertificateResponse {
    /// The DNS names and addresses that it is shown for.
    names: Vec<String>,
    #[schema(format = DateTime)]
    expires: String,
    /// Within seven days, or it has ended.
    ends_soon: bool,
}

/// An application.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Upstream)]
struct UpstreamResponse {
    name: String,
    servers: Vec<ServerResponse>,
}

/// A server of an application.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Server)]
struct ServerResponse {
    server: String,
    /// Whether it gets requests: its health checks succeed, and the last requests to it did not fail.
    healthy: bool,
}

/// A list that follows a source.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = List)]
struct ListResponse {
    list: String,
    /// The URL of the Local API.
    source: String,
    /// Whether it answered the last question.
    up: bool,
    /// How many decisions are in force.
    entries: usize,
    /// When it answered last. Null: it has not answered yet.
    #[schema(required, format = DateTime)]
    answered: Option<String>,
    /// Why it did not answer the last question.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl StatusResponse {
    pub(super) fn of(state: &AdminState, known: KnownGateways) -> Self {
        let gauges = state.gauges();
        Self {
            version: env!("PORTCULLIS_VERSION"),
            since: state.identity.since.to_string(),
            gateway: state.identity.id.to_string(),
            configuration: ConfigurationResponse::of(&state.config.load(), state.last_reload.load_full()),
            last_minute: known.last_minute(),
            complete: known.is_complete,
            gateways: known.gateways,
            listeners: state.listeners.load().iter().map(ToString::to_string).collect(),
            certificates: CertificateResponse::all(&state.name_expiries.load(), Timestamp::now()),
            upstreams: upstreams(gauges.servers),
            lists: gauges.lists.into_iter().map(ListResponse::of).collect(),
            store: StoreResponse::of(state),
            advice: AdviceResponse::all(state),
        }
    }
}

impl CertificateResponse {
    /// Names whose certificates end together are one entry.
    fn all(name_expiries: &NameExpiries, now: Timestamp) -> Vec<Self> {
        let mut ends: BTreeMap<Timestamp, Vec<String>> = BTreeMap::new();
        for (name, expires) in name_expiries.iter() {
            ends.entry(expires).or_default().push(name.to_owned());
        }
        let response = |(expires, names): (Timestamp, _)| Self {
            names,
            expires: expires.to_string(),
            ends_soon: expires.duration_since(now) < SOON,
        };
        ends.into_iter().map(response).collect()
    }
}

impl ListResponse {
    fn of(gauge: ListGauge) -> Self {
        Self {
            list: gauge.name.to_string(),
            up: gauge.is_up(),
            source: gauge.source,
            entries: gauge.entries,
            answered: gauge.answered.map(|answered| answered.to_string()),
            reason: gauge.failure.map(|failure| failure.to_string()),
        }
    }
}

/// As in the alert of `config/prometheus/rules.yaml`.
const SOON: SignedDuration = SignedDuration::from_hours(7 * 24);

impl ConfigurationResponse {
    fn of(config: &LoadedConfig, last_reload: Option<Arc<ReloadReport>>) -> Self {
        let last_reload = last_reload.map(|report| ReloadResponse {
            at: report.at.to_string(),
            result: if report.refused.is_none() { ResultWord::Success } else { ResultWord::Failure },
            reason: report.refused.clone(),
        });
        Self { source: config.source.clone(), loaded: config.loaded.to_string(), last_reload }
    }
}

/// `servers` are in the order of their upstreams.
fn upstreams(servers: Vec<(Arc<str>, Arc<str>, bool)>) -> Vec<UpstreamResponse> {
    let mut upstreams: Vec<UpstreamResponse> = Vec::new();
    for (name, server, healthy) in servers {
        if upstreams.last().is_none_or(|last| *last.name != *name) {
            upstreams.push(UpstreamResponse { name: name.to_string(), servers: Vec::new() });
        }
        if let Some(last) = upstreams.last_mut() {
            last.servers.push(ServerResponse { server: server.to_string(), healthy });
        }
    }
    upstreams
}
