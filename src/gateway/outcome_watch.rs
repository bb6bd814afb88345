//! Watches an answer for its outcome, and settles the request when the outcome is known.

use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::{Method, StatusCode};
use http_body::SizeHint;

use crate::gateway::exchange::Exchange;
use crate::gateway::reservation::{Answered, Reservation, SettlementTask};
use crate::listen::{Budget, BudgetShare, SHARE_FREE};
use crate::rules::decision::GainedSessions;
use crate::rules::outcome::inspection::BodyEnd;
use crate::rules::outcome::{Inspected, Inspection, Outcome, inspection};
use crate::wire::head::Fields;
use crate::words::clock;

/// The search for the outcome of an answer, and its settlement. It ends with the answer.
#[derive(Debug)]
pub struct OutcomeWatch {
    /// `None` when the outcome is known.
    inspection: Option<Inspection>,
    /// The sessions that the head gives its client.
    gained: GainedSessions,
    settlement: SettlementTask,
    /// The share of the connection's budget for answers that are inspected.
    pub(super) share: Option<BudgetShare>,
}

impl OutcomeWatch {
    /// Begins with the head of an answer, as the application sent it. `None` when nothing depends on the outcome.
    /// `is_through`: the answer has no body.
    pub fn begin(exchange: &mut Exchange, status: StatusCode, fields: &Fields, is_through: bool) -> Option<Self> {
        let Exchange { reservation, live, .. } = exchange;
        let rule = reservation.outcome_rule()?;
        let now = clock::wall();
        let gained = reservation.gained(fields, now);
        let tokens = reservation.awaited_tokens();
        if let Some(outcome) = rule.of_head(status, fields, now)
            && (outcome != Outcome::Success || tokens.is_none())
        {
            let answered = Answered { outcome: Some(outcome), gained };
            let settlement = reservation.settle(answered, is_through);
            return Some(Self { inspection: None, gained: GainedSessions::default(), settlement, share: None });
        }
        let bound = live.settings.inspect_body;
        let inspection = Inspection::begin(Arc::clone(rule), tokens.cloned(), status, fields, now, bound);
        Some(Self { inspection: Some(inspection), gained, settlement: SettlementTask::default(), share: None })
    }

    /// Waits for room for the part of the body that is kept, beside the other answers of the connection.
    pub async fn find_room(&mut self, exchange: &Exchange, body: &SizeHint, budget: &Budget) {
        let whole = inspection::room(exchange.live.settings.inspect_body);
        let length = body.upper().and_then(|length| usize::try_from(length).ok()).map_or(whole, |it| it.min(whole));
        if self.inspection.is_some() && length > SHARE_FREE {
            // A body that is read ahead is kept twice: for the inspection and for the client.
            let copies = if exchange.reservation.holds_head() { 2 } else { 1 };
            self.share = Some(budget.share(length.saturating_mul(copies), whole).await);
        }
    }

    /// Whether the outcome is still unknown.
    pub(super) fn is_inspecting(&self) -> bool {
        self.inspection.is_some()
    }

    /// Settles the request by all that was read, and returns when the client may get the answer. `is_through`: the
    /// answer has ended.
    pub async fn end(mut self, reservation: &mut Reservation, ending: BodyEnd, is_through: bool) {
        self.conclude(reservation, ending, is_through);
        self.settled(reservation).await;
    }

    /// Waits until the store has recorded what the outcome frees, if it is known.
    pub(super) async fn settled(&mut self, reservation: &mut Reservation) {
        poll_fn(|cx| self.poll_settled(cx, reservation)).await;
    }

    pub(super) fn poll_settled(&mut self, cx: &mut Context<'_>, reservation: &mut Reservation) -> Poll<()> {
        if let Some(outcome) = ready!(Pin::new(&mut self.settlement).poll(cx)) {
            reservation.set_outcome(outcome);
        }
        Poll::Ready(())
    }

    /// Whether the store has still to say whose the success is.
    pub(super) fn is_signing_in(&self) -> bool {
        self.settlement.is_signing_in()
    }

    /// Inspects the next bytes of the body.
    pub(super) fn feed(&mut self, reservation: &mut Reservation, data: &[u8]) {
        let Some(inspection) = &mut self.inspection else { return };
        inspection.feed(data);
        if inspection.is_full() {
            self.conclude(reservation, BodyEnd::Whole, false);
        }
    }

    pub(super) fn conclude(&mut self, reservation: &mut Reservation, ending: BodyEnd, is_through: bool) {
        let Some(inspection) = self.inspection.take() else { return };
        self.share = None;
        let Inspected { outcome, tokens, may_lack_tokens } = inspection.conclude(ending);
        let mut gained = mem::take(&mut self.gained);
        reservation.add_tokens(&mut gained, &tokens);
        // Without a session of its own it is no success, unless the part that is missing has one.
        let is_unsure = may_lack_tokens && !gained.has_fresh() && outcome == Some(Outcome::Success);
        let answered = Answered { outcome: outcome.filter(|_| !is_unsure), gained };
        self.settlement = reservation.settle(answered, is_through);
    }
}

/// Whether an answer stands for a body that is not sent. A status that never has a body stands for none.
pub(super) fn is_bodiless(exchange: &Exchange, status: StatusCode) -> bool {
    let has_one = !status.is_informational() && status != StatusCode::NO_CONTENT;
    has_one && exchange.facts.head.method == Method::HEAD || status == StatusCode::NOT_MODIFIED
}
