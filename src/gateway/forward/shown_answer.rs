//! An answer of the application that a proxy forwards itself, and shows.

use http::StatusCode;

use super::answers::is_bodiless;
use super::outcome_watch::OutcomeWatch;
use crate::gateway::exchange::Exchange;
use crate::gateway::reservation::Answered;
use crate::head::Fields;
use crate::head::KnownName;
use crate::outcome::Outcome;
use crate::outcome::inspection::BodyEnd;
use crate::pool::Pooled;

/// A shown answer, watched for its outcome. The exchange ends with it.
#[derive(Debug)]
pub struct ShownAnswer {
    exchange: Pooled<Exchange>,
    watch: Option<OutcomeWatch>,
}

/// What the outcome and the concurrency slots need of the body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NeededBody {
    Nothing,
    /// As it passes.
    Stream,
    /// Before the client gets the head: a success sets a cookie in it, or gives a session.
    BeforeHead,
}

/// Who answered in place of the application, because it gave no answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unanswered {
    /// The application never got the request.
    NotSent,
    /// The application may have got it.
    MaybeSent,
}

impl ShownAnswer {
    /// Begins with the head, as the application sent it. `is_through`: there is no body. Returns when the store has recorded
    /// what the head alone frees.
    pub async fn begin(mut exchange: Pooled<Exchange>, status: StatusCode, fields: &Fields, is_through: bool) -> Self {
        exchange.set_status(status);
        exchange.renew_sessions(fields);
        let mut watch = OutcomeWatch::begin(&mut exchange, status, fields, is_through);
        if let Some(watch) = &mut watch {
            if is_through {
                // The answer has only a head. It may stand for a body that was not sent.
                let ending = if is_bodiless(&exchange, status) { BodyEnd::Cut } else { BodyEnd::Whole };
                watch.conclude(&mut exchange, ending, true);
            }
            watch.settled(&mut exchange).await;
        }
        Self { exchange, watch }
    }

    /// Of a proxy that answered by itself, for this reason.
    pub async fn missing(
        mut exchange: Pooled<Exchange>,
        status: StatusCode,
        unanswered: Unanswered,
        reason: &str,
    ) -> Self {
        exchange.set_status(status);
        exchange.decision_mut().set_error();
        exchange.set_error(format!("the application did not answer: {reason}"));
        let outcome = match unanswered {
            Unanswered::NotSent => Some(Outcome::Neither),
            Unanswered::MaybeSent => None,
        };
        let answered = Answered { outcome, ..Answered::default() };
        exchange.settle(answered, false).await;
        Self { exchange, watch: None }
    }

    pub fn needed_body(&self) -> NeededBody {
        match &self.watch {
            Some(watch) if watch.is_inspecting() && self.exchange.holds_head() => NeededBody::BeforeHead,
            Some(watch) if watch.is_inspecting() => NeededBody::Stream,
            // Without the body, its end would not be seen.
            _ if self.exchange.holds_slots() => NeededBody::Stream,
            _ => NeededBody::Nothing,
        }
    }

    /// Takes the next part of the body. Returns when the store has said whose a success is.
    pub async fn feed(&mut self, data: &[u8]) {
        self.exchange.add_bytes_out(data.len() as u64);
        if let Some(watch) = &mut self.watch {
            watch.feed(&mut self.exchange, data);
            if watch.is_signing_in() {
                watch.settled(&mut self.exchange).await;
            }
        }
    }

    /// The body has ended, or no more of it is shown. Returns when the store has recorded what the outcome frees.
    pub async fn end(&mut self, ending: BodyEnd) {
        if let Some(watch) = &mut self.watch {
            watch.conclude(&mut self.exchange, ending, ending == BodyEnd::Whole);
            watch.settled(&mut self.exchange).await;
        }
    }

    /// The fields that the gateway adds to the head: the state of limits, and the id of the request.
    pub fn own_fields(&self) -> Fields {
        let mut fields = Fields::default();
        self.exchange.live.ratelimit_headers.write(&mut fields, &self.exchange.decision().report);
        fields.append(KnownName::X_REQUEST_ID, self.exchange.facts.request_id.as_bytes());
        fields
    }

    /// The device cookie that the head sets after a success. `None` on a second call.
    pub fn take_device_cookie(&mut self) -> Option<String> {
        self.exchange.take_device_cookie()
    }
}
