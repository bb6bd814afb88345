//! Builds the snapshot that requests hold out of settings.

use std::sync::Arc;

use super::followed_lists::OpenLists;
use super::token_keys::OpenKeys;
use crate::client::TrustedProxies;
use crate::decision::Policy;
use crate::gateway;
use crate::gateway::Snapshot;
use crate::gateway::TokenSettings;
use crate::record::LogSettings;
use crate::record::Recorder;
use crate::record::RouteSeries;
use crate::record::ServerNames;
use crate::record::Sinks;
use crate::record::notify::WebhookChannels;
use crate::record::spans::TracingSettings;
use crate::upstream;
use crate::upstream::Upstream;

/// The settings that become a snapshot.
#[derive(Debug)]
pub struct SnapshotParts {
    pub policy: Policy,
    pub clients: TrustedProxies,
    pub upstreams: Vec<upstream::Settings>,
    pub requests: gateway::GatewaySettings,
    pub tracing: Option<TracingSettings>,
    pub tokens: Option<TokenSettings>,
    pub route_series: RouteSeries,
}

/// Builds a snapshot. An upstream or a tracer that did not change is taken over from `previous`. To be called within a runtime.
pub(super) fn build(
    parts: SnapshotParts,
    log: &LogSettings,
    channels: &WebhookChannels,
    (lists, keys): (&OpenLists, &OpenKeys),
    previous: Option<&Snapshot>,
    sinks: &Sinks,
) -> Snapshot {
    let SnapshotParts { policy, clients, upstreams, requests, tracing, tokens, route_series } = parts;
    let known = previous.map_or(&[][..], |snapshot| &snapshot.upstreams);
    let upstreams: Vec<_> = upstreams.into_iter().map(|settings| Upstream::carry_over(settings, known)).collect();
    let recorder = Recorder::new(sinks, log, &policy, upstreams.iter().map(|upstream| server_names(upstream)));
    let known = previous.and_then(|snapshot| snapshot.recorder.tracer());
    let tracer = sinks.span_exporters().open(tracing.as_ref(), known, sinks.metrics());
    let recorder =
        recorder.with_channels(&policy, channels).with_route_series(&policy, route_series).with_tracer(tracer);
    let tokens = keys.verifier(tokens.as_ref(), previous);
    Snapshot::new(policy, clients, upstreams, requests, recorder, lists.addresses().collect()).with_tokens(tokens)
}

fn server_names(upstream: &Upstream) -> ServerNames {
    let settings = upstream.settings();
    let servers = settings.servers.iter().map(|server| Arc::from(server.name()));
    ServerNames { upstream: Arc::clone(&settings.name), servers: servers.collect() }
}
