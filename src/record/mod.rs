//! The reports of the gateway: the request log, metrics, spans, and events for the audit trail, webhooks and the event
//! stream. No request waits for any of them.
//!
//! [`Sinks`] live as long as the process. A [`Recorder`] is built from them for each configuration. It looks every name
//! up once, so that a request only formats its line and adds to counters.

pub mod access_log;
pub mod advice;
pub mod attacks;
pub mod audit;
pub mod event;
pub mod event_stream;
pub mod heavy_keys;
pub mod history;
pub mod kept_requests;
mod line;
pub mod log;
pub mod metrics;
pub mod notify;
mod recorder;
mod request_record;
mod sinks;
pub mod spans;

pub use self::event::{Event, EventBus};
pub use self::line::LineWriter;
pub use self::metrics::{Fault, Gauges, ListGauge, Metrics, RouteSeries, ServerNames};
pub use self::recorder::Recorder;
pub use self::request_record::{
    AppliedLimit, DecisionLabel, MaskedKey, NO_ROUTE, NO_ROUTE_LABEL, OTHER_ROUTES_LABEL, ObservedOutcome,
    RequestRecord, UpstreamRecord,
};
pub use self::sinks::{GatewayName, LogFormat, LogSettings, Sinks};
pub use self::spans::TraceId;
