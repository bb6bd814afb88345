//! The label sets of metrics.

use prometheus_client::encoding::EncodeLabelSet;

use super::route_series::OfRoute;

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
