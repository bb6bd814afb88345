//! What the gateway reports of its work: the request log, metrics, spans, and events for the audit trail, webhooks and the
//! event stream. No request waits for any of them.
//!
//! [`Sinks`] live as long as the process. A [`Recorder`] is built from them for each configuration. It looks every name
//! up once, so that a request only formats its line and adds to counters.

pub mod access_log;
pub mod advice;
pub mod audit;
pub mod event;
pub mod event_bus;
mod event_pace;
pub mod event_stream;
pub mod heavy_keys;
pub mod history;
pub mod kept_requests;
pub mod log;
pub mod metrics;
pub mod notify;
pub mod past_events;
pub mod spans;

mod decision_label;
mod limit_decision;
mod line;
mod line_writer;
mod log_settings;
mod no_route;
mod observed_outcome;
mod outgoing;
mod recorder;
mod request_record;
mod sinks;
mod trace;

pub use self::decision_label::DecisionLabel;
pub use self::event::Event;
pub use self::event_bus::EventBus;
pub use self::line_writer::LineWriter;
pub use self::log_settings::LogFormat;
pub use self::log_settings::LogSettings;
pub use self::metrics::Gauges;
pub use self::metrics::ListGauge;
pub use self::metrics::Metrics;
pub use self::metrics::RouteSeries;
pub use self::metrics::ServerNames;
pub use self::no_route::NO_ROUTE;
pub use self::no_route::NO_ROUTE_LABEL;
pub use self::no_route::OTHER_ROUTES_LABEL;
pub use self::observed_outcome::ObservedOutcome;
pub use self::recorder::Recorder;
pub use self::request_record::AppliedLimit;
pub use self::request_record::MaskedKey;
pub use self::request_record::RequestRecord;
pub use self::request_record::UpstreamRecord;
pub use self::sinks::Sinks;
pub use self::trace::TraceId;
