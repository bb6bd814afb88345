//! What was decided of a request, as it is logged, counted and shown.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use crate::decision::Denial;
use crate::decision::DenialCause;
use crate::decision::LimitReports;
use crate::decision::Pass;
use crate::decision::Penalty;
use crate::limit::LimitId;
use crate::record::AppliedLimit;
use crate::record::DecisionLabel;
use crate::route::RouteId;
use crate::store::bans::BanId;
use crate::units::whole_seconds;

/// Made when the decision is final. Without a decision a request ends with a fault.
#[derive(Debug)]
pub struct DecisionRecord {
    pub route: Option<RouteId>,
    pub label: DecisionLabel,
    pub decider: Decider,
    /// The ban that denies it.
    pub ban: Option<BanId>,
    /// How each limit decided that was asked.
    pub report: LimitReports,
    /// In how many seconds the client is told to come again.
    pub retry_after: Option<u64>,
    /// What a limit did to it; `None` where nothing reads that.
    pub subject: Option<Box<AppliedLimit>>,
    /// How long deciding took; `None`: nothing was decided.
    pub took: Option<Duration>,
}

/// What decided, where something did.
#[derive(Clone, Debug)]
pub enum Decider {
    Nothing,
    Limit(LimitId),
    List(Arc<str>),
}

impl DecisionRecord {
    pub fn undecided(route: Option<RouteId>) -> Self {
        Self {
            route,
            label: DecisionLabel::Error,
            decider: Decider::Nothing,
            ban: None,
            report: LimitReports::default(),
            retry_after: None,
            subject: None,
            took: None,
        }
    }

    /// `pass` may have a delay: then the request is held by that limit before it is forwarded.
    pub fn of_pass(pass: &mut Pass, subject: Option<Box<AppliedLimit>>, took: Duration) -> Self {
        let (label, decider) = match pass.delay {
            Some((limit, _)) => (DecisionLabel::Delayed, Decider::Limit(limit)),
            None => (DecisionLabel::Allowed, Decider::Nothing),
        };
        let report = mem::take(&mut pass.report);
        Self { label, decider, report, subject, took: Some(took), ..Self::undecided(pass.route) }
    }

    /// `denial` is final: the bans that it begins have begun.
    pub fn of_denial(
        denial: &mut Denial<'_>,
        subject: Option<Box<AppliedLimit>>,
        ban: Option<BanId>,
        took: Duration,
    ) -> Self {
        let decider = match (&denial.cause, denial.limit) {
            (DenialCause::Listed { list }, _) => Decider::List(list.clone()),
            (_, Some(limit)) => Decider::Limit(limit),
            (_, None) => Decider::Nothing,
        };
        Self {
            route: denial.route,
            label: label(denial),
            decider,
            ban,
            report: mem::take(&mut denial.report),
            retry_after: retry_after(denial),
            subject,
            took: Some(took),
        }
    }

    /// Whatever was decided, the request was refused or not answered by the application.
    pub fn set_error(&mut self) {
        self.label = DecisionLabel::Error;
    }

    /// It cannot be held, and is denied by the limit that would have held it.
    pub fn set_denied_unheld(&mut self, denial: &Denial<'_>) {
        self.label = DecisionLabel::Denied;
        self.retry_after = retry_after(denial);
    }
}

fn label(denial: &Denial<'_>) -> DecisionLabel {
    match (&denial.cause, denial.penalty) {
        (DenialCause::Listed { .. } | DenialCause::NotOnList, _) => DecisionLabel::Listed,
        (DenialCause::TooManyValues, _) | (DenialCause::Limited { .. }, Penalty::None) => DecisionLabel::Denied,
        (DenialCause::Banned, _) | (DenialCause::Limited { .. }, Penalty::Ban) => DecisionLabel::Banned,
        (DenialCause::Limited { .. }, Penalty::Tarpit(_)) => DecisionLabel::Tarpitted,
        (DenialCause::Limited { .. }, Penalty::Challenge(_)) => DecisionLabel::Challenged,
    }
}

/// What `Retry-After` says: whole seconds, at least one.
fn retry_after(denial: &Denial<'_>) -> Option<u64> {
    match denial.cause {
        DenialCause::Limited { retry_after, .. } => retry_after.map(|wait| whole_seconds(wait).max(1)),
        _ => None,
    }
}
