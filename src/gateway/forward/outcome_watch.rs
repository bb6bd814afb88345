//! Watches an answer for its outcome, and settles the request when the outcome is known.

use std::sync::Arc;

use http::StatusCode;
use http_body::SizeHint;

use crate::gateway::exchange::Exchange;
use crate::gateway::reservation::SettlementTask;
use crate::head::Fields;
use crate::listen::Budget;
use crate::listen::BudgetShare;
use crate::listen::SHARE_FREE;
use crate::outcome::Inspection;
use crate::outcome::Outcome;
use crate::outcome::inspection;
use crate::outcome::inspection::BodyEnd;
use crate::record::ObservedOutcome;

/// The search for the outcome of an answer, and its settlement. It ends with the answer.
#[derive(Debug)]
pub struct OutcomeWatch {
    /// `None` when the outcome is known.
    inspection: Option<Inspection>,
    pub(super) settlement: SettlementTask,
    /// The share of the connection's budget for answers that are inspected.
    pub(super) share: Option<BudgetShare>,
}

impl OutcomeWatch {
    /// Begins with the head of an answer, as the application sent it. `None` when nothing depends on the outcome.
    /// `is_through`: the answer has no body.
    pub fn begin(exchange: &mut Exchange, status: StatusCode, fields: &Fields, is_through: bool) -> Option<Self> {
        let rule = exchange.outcome_rule()?;
        if let Some(outcome) = rule.of_head(status, fields) {
            return Some(Self {
                inspection: None,
                settlement: exchange.settle(ObservedOutcome::Known(outcome), is_through),
                share: None,
            });
        }
        let bound = exchange.live.settings.inspect_body;
        let inspection = Inspection::begin(Arc::clone(rule), status, fields, bound);
        Some(Self { inspection: Some(inspection), settlement: SettlementTask::default(), share: None })
    }

    /// Waits for room for the part of the body that is kept, beside the other answers of the connection.
    pub async fn find_room(&mut self, exchange: &Exchange, body: &SizeHint, budget: &Budget) {
        let whole = inspection::room(exchange.live.settings.inspect_body);
        let length = body.upper().and_then(|length| usize::try_from(length).ok()).map_or(whole, |it| it.min(whole));
        if self.inspection.is_some() && length > SHARE_FREE {
            // A body that is read ahead is kept twice: for the inspection and for the client.
            let copies = if exchange.may_set_device_cookie() { 2 } else { 1 };
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
        self.settlement.await;
    }

    /// Waits until the store has recorded what the outcome frees, if it is known.
    pub(super) async fn settled(&mut self) {
        (&mut self.settlement).await;
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
        if let Some(inspection) = self.inspection.take() {
            self.share = None;
            self.settlement = exchange.settle(observed(inspection.conclude(ending)), is_through);
        }
    }
}

fn observed(outcome: Option<Outcome>) -> ObservedOutcome {
    outcome.map_or(ObservedOutcome::Unknown, ObservedOutcome::Known)
}
