//! Watches an answer for its outcome, and settles the request when the outcome is known.

use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use http::StatusCode;
use http_body::SizeHint;

use crate::decision::GainedSessions;
use crate::gateway::exchange::Exchange;
use crate::gateway::reservation::Answered;
use crate::gateway::reservation::SettlementTask;
use crate::head::Fields;
use crate::listen::Budget;
use crate::listen::BudgetShare;
use crate::listen::SHARE_FREE;
use crate::outcome::Inspected;
use crate::outcome::Inspection;
use crate::outcome::Outcome;
use crate::outcome::inspection;
use crate::outcome::inspection::BodyEnd;

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
        let rule = exchange.outcome_rule()?;
        let gained = exchange.gained(fields);
        let tokens = exchange.awaited_tokens();
        if let Some(outcome) = rule.of_head(status, fields)
            && (outcome != Outcome::Success || tokens.is_none())
        {
            let answered = Answered { outcome: Some(outcome), gained };
            let settlement = exchange.settle(answered, is_through);
            return Some(Self { inspection: None, gained: GainedSessions::default(), settlement, share: None });
        }
        let bound = exchange.live.settings.inspect_body;
        let inspection = Inspection::begin(Arc::clone(rule), tokens.cloned(), status, fields, bound);
        Some(Self { inspection: Some(inspection), gained, settlement: SettlementTask::default(), share: None })
    }

    /// Waits for room for the part of the body that is kept, beside the other answers of the connection.
    pub async fn find_room(&mut self, exchange: &Exchange, body: &SizeHint, budget: &Budget) {
        let whole = inspection::room(exchange.live.settings.inspect_body);
        let length = body.upper().and_then(|length| usize::try_from(length).ok()).map_or(whole, |it| it.min(whole));
        if self.inspection.is_some() && length > SHARE_FREE {
            // A body that is read ahead is kept twice: for the inspection and for the client.
            let copies = if exchange.holds_head() { 2 } else { 1 };
            self.share = Some(budget.share(length.saturating_mul(copies), whole).await);
        }
    }

    /// Whether the outcome is still unknown.
    pub(super) fn is_inspecting(&self) -> bool {
        self.inspection.is_some()
    }

    /// Settles the request by all that was read, and returns when the client may get the answer. `is_through`: the
    /// answer has ended.
    pub async fn end(mut self, exchange: &mut Exchange, ending: BodyEnd, is_through: bool) {
        self.conclude(exchange, ending, is_through);
        self.settled(exchange).await;
    }

    /// Waits until the store has recorded what the outcome frees, if it is known.
    pub(super) async fn settled(&mut self, exchange: &mut Exchange) {
        poll_fn(|cx| self.poll_settled(cx, exchange)).await;
    }

    pub(super) fn poll_settled(&mut self, cx: &mut Context<'_>, exchange: &mut Exchange) -> Poll<()> {
        if let Some(outcome) = ready!(Pin::new(&mut self.settlement).poll(cx)) {
            exchange.set_outcome(outcome);
        }
        Poll::Ready(())
    }

    /// Whether the store has still to say whose the success is.
    pub(super) fn is_signing_in(&self) -> bool {
        self.settlement.is_signing_in()
    }

    /// Inspects the next bytes of the body.
    pub(super) fn feed(&mut self, exchange: &mut Exchange, data: &[u8]) {
        let Some(inspection) = &mut self.inspection else { return };
        inspection.feed(data);
        if inspection.is_full() {
            self.conclude(exchange, BodyEnd::Whole, false);
        }
    }

    pub(super) fn conclude(&mut self, exchange: &mut Exchange, ending: BodyEnd, is_through: bool) {
        let Some(inspection) = self.inspection.take() else { return };
        self.share = None;
        let Inspected { outcome, tokens, may_lack_tokens } = inspection.conclude(ending);
        let mut gained = mem::take(&mut self.gained);
        exchange.add_tokens(&mut gained, &tokens);
        // Without a session of its own it is no success, unless the part that is missing has one.
        let is_unsure = may_lack_tokens && !gained.has_fresh() && outcome == Some(Outcome::Success);
        let answered = Answered { outcome: outcome.filter(|_| !is_unsure), gained };
        self.settlement = exchange.settle(answered, is_through);
    }
}
