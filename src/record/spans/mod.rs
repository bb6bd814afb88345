//! Spans of requests for OpenTelemetry, sent to a collector over OTLP/HTTP.
//!
//! A request that is traced carries a [`RequestTrace`]: the ids of its spans, and when they began. When the request has ended,
//! its spans go into a queue, and a task of its own sends them.

mod export;
mod request_spans;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry_sdk::trace::SpanData;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::export::{CollectorUrl, InvalidCollectorUrl, SpanExporters};
pub(in crate::record) use self::request_spans::SpanNames;
use crate::record::RequestRecord;
use crate::record::metrics::SpanMetrics;
use crate::record::spans::export::export_queued;
use crate::record::spans::request_spans::End;
use crate::wire::head::{Fields, KnownName, Name};
use crate::words::clock;
use crate::words::clock::Timestamp;
use crate::words::digits::hex;

// Decides which requests are traced, and queues their spans.

/// So many requests may wait to be sent. Their spans take a few KiB each.
const MAX_QUEUED: usize = 2048;

/// The `tracing` section of the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct TracingSettings {
    pub collector: CollectorUrl,
    /// The share of the requests that is traced where the client does not say.
    pub sample: SampleRatio,
}

/// The sending end of the queue. When the last holder drops it, the task sends the queue and ends.
#[derive(Debug)]
pub struct Tracer {
    settings: TracingSettings,
    queue: mpsc::Sender<Vec<SpanData>>,
    counters: SpanMetrics,
}

impl Tracer {
    /// To be called within a runtime. When `closing` is cancelled, the task sends the queue and ends.
    pub(super) fn open(
        settings: TracingSettings,
        counters: SpanMetrics,
        tasks: &TaskTracker,
        closing: CancellationToken,
    ) -> Arc<Self> {
        let (queue, ended) = mpsc::channel(MAX_QUEUED);
        tasks.spawn(export_queued(settings.collector.clone(), ended, counters.clone(), closing));
        Arc::new(Self { settings, queue, counters })
    }

    pub fn settings(&self) -> &TracingSettings {
        &self.settings
    }

    /// `None`: the request is not traced. Where its `traceparent` says whether it is sampled, that holds.
    pub fn begin(&self, fields: &Fields) -> Option<Box<RequestTrace>> {
        let parent = TraceParent::of(fields);
        let is_sampled = match &parent {
            Some(parent) => parent.is_sampled,
            None => self.settings.sample.takes(fastrand::f64()),
        };
        is_sampled.then(|| Box::new(RequestTrace::begin(parent.map(|parent| parent.ids()))))
    }

    /// Queues the spans of a request that ended at `at`. Does not wait.
    pub(in crate::record) fn end(
        &self,
        trace: &RequestTrace,
        request: &RequestRecord<'_>,
        names: SpanNames<'_>,
        at: Timestamp,
    ) {
        let spans = request_spans::spans(trace, request, names, End { at, wall: clock::wall() });
        let count = spans.len();
        if self.queue.try_send(spans).is_err() {
            self.counters.dropped(count);
        }
    }
}

// The trace of a request under way.

/// The ids of a request's spans, and when they began.
#[derive(Clone, Debug)]
pub struct RequestTrace {
    pub(super) trace: u128,
    /// The span of the client, if it has one.
    pub(super) parent: Option<u64>,
    /// The span of the whole request.
    pub(super) request: u64,
    pub(super) decision: Option<DecisionMoment>,
    pub(super) upstream: Option<UpstreamMoment>,
}

/// When the decision was made, and how long it took.
#[derive(Clone, Copy, Debug)]
pub(super) struct DecisionMoment {
    pub(super) at: Timestamp,
    pub(super) took: Duration,
}

/// When the request was sent on, in which span.
#[derive(Clone, Copy, Debug)]
pub(super) struct UpstreamMoment {
    pub(super) span: u64,
    pub(super) began: Timestamp,
}

impl RequestTrace {
    /// `parent`: the trace and the span of the client. Without them the request begins a trace.
    pub(super) fn begin(parent: Option<(u128, u64)>) -> Self {
        Self {
            trace: parent.map_or_else(|| fastrand::u128(1..), |(trace, _)| trace),
            parent: parent.map(|(_, span)| span),
            request: random_span(),
            decision: None,
            upstream: None,
        }
    }

    pub fn id(&self) -> TraceId {
        TraceId::from(self.trace)
    }

    /// The rules have decided, which took so long.
    pub fn decided(&mut self, at: Timestamp, took: Duration) {
        self.decision = Some(DecisionMoment { at, took });
    }

    /// The request goes to an application, whose head tells it which trace it continues.
    pub fn forward(&mut self, fields: &mut Fields, began: Timestamp) {
        if self.parent.is_none() {
            // It belonged to a `traceparent` that is not valid.
            fields.remove(Name::of("tracestate"));
        }
        let span = random_span();
        self.upstream = Some(UpstreamMoment { span, began });
        let trace = hex(self.trace);
        let parent = format!("00-{}-{span:016x}-01", String::from_utf8_lossy(&trace));
        fields.insert(KnownName::TRACEPARENT, parent.as_bytes());
    }
}

/// Zero is no id.
pub(super) fn random_span() -> u64 {
    fastrand::u64(1..)
}

// Which share of the requests is traced.

/// From 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleRatio(f64);

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` is not a share from 0 to 1")]
pub struct InvalidSampleRatio(String);

impl SampleRatio {
    pub const ALL: Self = Self(1.0);

    /// `random`: evenly distributed, from 0 to below 1.
    pub(super) fn takes(self, random: f64) -> bool {
        random < self.0
    }
}

impl fmt::Display for SampleRatio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for SampleRatio {
    type Err = InvalidSampleRatio;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidSampleRatio(text.to_owned());
        // Rust also reads `inf`, `1e-3` and `+1`, which are mistakes here.
        if !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return Err(invalid());
        }
        let ratio: f64 = text.parse().map_err(|_| invalid())?;
        if (0.0..=1.0).contains(&ratio) { Ok(Self(ratio)) } else { Err(invalid()) }
    }
}

// The trace of a request, from its `traceparent` (W3C Trace Context).

const DIGITS: usize = 32;

const SPAN_DIGITS: usize = 16;

/// `00-`, the id, `-`, the digits of a span, `-`, two of flags.
const LENGTH: usize = 3 + DIGITS + 1 + SPAN_DIGITS + 1 + 2;

/// 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TraceId([u8; DIGITS]);

/// The content of a valid `traceparent`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::record) struct TraceParent {
    pub(in crate::record) trace: TraceId,
    span: [u8; SPAN_DIGITS],
    /// The sender of the request records the trace.
    pub(in crate::record) is_sampled: bool,
}

impl TraceParent {
    /// `None`: there is no `traceparent`, more than one, or an invalid one.
    pub(in crate::record) fn of(fields: &Fields) -> Option<Self> {
        Self::read(fields.single(KnownName::TRACEPARENT)?)
    }

    fn read(text: &[u8]) -> Option<Self> {
        let (known, more) = text.split_at_checked(LENGTH)?;
        let [version, id, span, flags] = [&known[..2], &known[3..35], &known[36..52], &known[53..]];
        let is_hex = |digits: &[u8]| digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        let is_null = |digits: &[u8]| digits.iter().all(|digit| *digit == b'0');
        let is_valid = [2, 35, 52].iter().all(|&dash| known[dash] == b'-')
            && [version, id, span, flags].into_iter().all(is_hex)
            && version != b"ff"
            && !is_null(id)
            && !is_null(span);
        // Later versions may append more fields. Version 00 has no more.
        let ends = if version == b"00" { more.is_empty() } else { matches!(more, [] | [b'-', ..]) };
        (is_valid && ends).then(|| Self {
            trace: TraceId(id.try_into().expect("32 digits stand between the dashes")),
            span: span.try_into().expect("16 digits stand between the dashes"),
            is_sampled: value(flags) & 1 == 1,
        })
    }

    /// The trace and the span as numbers.
    pub(in crate::record) fn ids(&self) -> (u128, u64) {
        let span = value(&self.span);
        (value(&self.trace.0), u64::try_from(span).expect("16 digits are 64 bits"))
    }
}

/// The number that hexadecimal digits are, 32 of them at most.
fn value(digits: &[u8]) -> u128 {
    let digits = digits.iter().map(|digit| char::from(*digit).to_digit(16).unwrap_or(0));
    digits.fold(0, |value, digit| (value << 4) | u128::from(digit))
}

impl TraceId {
    /// `None`: there is no `traceparent`, more than one, or an invalid one.
    pub fn of(fields: &Fields) -> Option<Self> {
        TraceParent::of(fields).map(|parent| parent.trace)
    }

    pub fn as_bytes(&self) -> &[u8; DIGITS] {
        &self.0
    }
}

impl From<u128> for TraceId {
    fn from(id: u128) -> Self {
        Self(hex(id))
    }
}

#[cfg(test)]
mod tests {
    use super::{TraceParent, *};
    use crate::wire::head::{Fields, KnownName};

    #[test]
    fn a_ratio_is_a_share() {
        for (text, expected) in
            [("0", Some(0.0)), ("1", Some(1.0)), ("1.0", Some(1.0)), ("0.01", Some(0.01)), (".5", Some(0.5))]
        {
            assert_eq!(text.parse().ok(), expected.map(SampleRatio), "{text}");
        }
        for wrong in ["", "-1", "1.01", "5%", "NaN", "inf", "1e-3", "all", "0.0.1"] {
            assert!(wrong.parse::<SampleRatio>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn none_takes_nothing_and_all_takes_everything() {
        assert!(!SampleRatio(0.0).takes(0.0) && SampleRatio::ALL.takes(0.999_999));
        assert!(SampleRatio(0.25).takes(0.2) && !SampleRatio(0.25).takes(0.25));
    }

    const ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let found = TraceParent::read(text.as_bytes()).map(|parent| parent.trace);
        assert_eq!(found.as_ref().map(|id| &id.as_bytes()[..]), expected.map(str::as_bytes), "{text}");
    }

    #[test]
    fn the_id_of_a_valid_field_is_taken() {
        check(&format!("00-{ID}-00f067aa0ba902b7-01"), Some(ID));
        check(&format!("cc-{ID}-00f067aa0ba902b7-00"), Some(ID));
        check(&format!("cc-{ID}-00f067aa0ba902b7-00-what-comes"), Some(ID));
    }

    #[test]
    fn the_numbers_and_the_flag_are_those_of_the_field() {
        for (flags, is_sampled) in [("00", false), ("01", true), ("03", true), ("02", false)] {
            let text = format!("00-{ID}-00f067aa0ba902b7-{flags}");
            let parent = TraceParent::read(text.as_bytes()).expect("a valid field");
            assert_eq!(parent.is_sampled, is_sampled, "{flags}");
            assert_eq!(parent.ids(), (0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736, 0x00f0_67aa_0ba9_02b7));
            assert_eq!(TraceId::from(parent.ids().0), parent.trace);
        }
    }

    #[test]
    fn an_invalid_field_names_no_trace() {
        for wrong in [
            String::new(),
            ID.to_owned(),
            format!("00-{ID}-00f067aa0ba902b7"),
            format!("00-{ID}-00f067aa0ba902b7-01-more"),
            format!("cc-{ID}-00f067aa0ba902b7-01more"),
            format!("ff-{ID}-00f067aa0ba902b7-01"),
            format!("00-{}-00f067aa0ba902b7-01", ID.to_uppercase()),
            format!("00-{ID}-0000000000000000-01"),
            format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            format!("00-{ID}-00f067aa0ba902b7-0g"),
            format!("00_{ID}-00f067aa0ba902b7-01"),
            format!("00-{}\"-00f067aa0ba902b7-01", &ID[1..]),
        ] {
            check(&wrong, None);
        }
        let mut twice = Fields::default();
        for _ in 0..2 {
            twice.append(KnownName::TRACEPARENT, b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
            assert_eq!(TraceId::of(&twice).is_some(), twice.len() == 1);
        }
    }

    #[test]
    fn the_application_continues_the_trace_below_the_span_that_was_sent_to_it() {
        let mut trace = RequestTrace::begin(Some((0x4bf9, 7)));
        let mut fields = Fields::default();
        trace.forward(&mut fields, Timestamp::EPOCH);
        let parent = TraceParent::of(&fields).expect("a valid field");
        let span = trace.upstream.expect("it was forwarded").span;
        assert_eq!((parent.ids(), parent.is_sampled), ((0x4bf9, span), true));
        assert_ne!(span, trace.request);
    }
}
