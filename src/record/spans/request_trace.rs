//! The trace of a request under way.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::digits::hex;
use crate::record::TraceId;

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

    /// The request goes to an application. Returns the `traceparent` for it.
    pub fn forwarded(&mut self, began: Timestamp) -> String {
        let span = random_span();
        self.upstream = Some(UpstreamMoment { span, began });
        let trace = hex(self.trace);
        format!("00-{}-{span:016x}-01", String::from_utf8_lossy(&trace))
    }

    /// Whether the client named the trace.
    pub fn has_parent(&self) -> bool {
        self.parent.is_some()
    }
}

/// Zero is no id.
pub(super) fn random_span() -> u64 {
    fastrand::u64(1..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::Fields;
    use crate::head::KnownName;
    use crate::record::trace::TraceParent;

    #[test]
    fn the_application_continues_the_trace_below_the_span_that_was_sent_to_it() {
        let mut trace = RequestTrace::begin(Some((0x4bf9, 7)));
        let text = trace.forwarded(Timestamp::EPOCH);
        let fields = Fields::from_iter([(KnownName::TRACEPARENT, text.as_bytes())]);
        let parent = TraceParent::of(&fields).expect("a valid field");
        let span = trace.upstream.expect("it was forwarded").span;
        assert_eq!((parent.ids(), parent.is_sampled), ((0x4bf9, span), true));
        assert_ne!(span, trace.request);
    }
}
