//! Spans of requests for OpenTelemetry, sent to a collector over OTLP/HTTP.
//!
//! A request that is traced carries a [`RequestTrace`]: the ids of its spans, and when they began. When the request has ended,
//! its spans go into a queue, and a task of its own sends them.

mod collector_client;
mod collector_url;
mod export;
mod request_spans;
mod request_trace;
mod sample_ratio;
mod span_exporters;
mod text;
mod tracer;

pub use self::collector_url::CollectorUrl;
pub use self::collector_url::InvalidCollectorUrl;
pub(in crate::record) use self::request_spans::SpanNames;
pub use self::request_trace::RequestTrace;
pub use self::sample_ratio::InvalidSampleRatio;
pub use self::sample_ratio::SampleRatio;
pub use self::span_exporters::SpanExporters;
pub use self::tracer::Tracer;
pub use self::tracer::TracingSettings;
