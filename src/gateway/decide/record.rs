//! The decision about a request, as it is logged, counted and shown.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use crate::decision::Denial;
use crate::decision::DenialCause;
use crate::decision::LimitReports;
use crate::decision::ListChallenge;
use crate::decision::Pass;
use crate::decision::Penalty;
use crate::decision::Policy;
use crate::limit::LimitId;
use crate::record::AppliedLimit;
use crate::record::DecisionLabel;
use crate::record::kept_requests::KeptRequest;
use crate::route::RouteId;
use crate::store::bans::BanId;
use crate::units::whole_seconds;

/// The final decision about a request, or that there was none.
#[derive(Debug)]
pub struct DecisionRecord {
    pub route: Option<RouteId>,
    pub label: DecisionLabel,
    pub decider: Decider,
    /// The ban that denies the request.
    pub ban: Option<BanId>,
    /// The decision of each limit that applied.
    pub report: LimitReports,
    /// The seconds of `Retry-After`.
    pub retry_after: Option<u64>,
    /// What a limit did to the request; `None` when nothing reads it.
    pub applied_limit: Option<Box<AppliedLimit>>,
    /// The story of the request so far; `None` for a request that passes at once.
    pub story: Option<Box<KeptRequest>>,
    /// How long the decision took; `None` when nothing was decided.
    pub took: Option<Duration>,
}

/// What decided.
#[derive(Clone, Debug)]
pub enum Decider {
    Nothing,
    Limit(LimitId),
    List(Arc<str>),
}

impl Decider {
    /// The name of the limit that decided.
    pub fn limit<'p>(&self, policy: &'p Policy) -> Option<&'p str> {
        match self {
            Self::Limit(id) => policy.limits.get(usize::from(id.0)).map(|limit| &*limit.name),
            Self::Nothing | Self::List(_) => None,
        }
    }

    /// The name of the list that denies the client.
    pub fn list(&self) -> Option<&str> {
        match self {
            Self::List(name) => Some(name),
            Self::Nothing | Self::Limit(_) => None,
        }
    }
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
            applied_limit: None,
            story: None,
            took: None,
        }
    }

    /// `pass` may have a delay: its limit holds the request before it is forwarded.
    pub fn of_pass(
        pass: &mut Pass,
        applied_limit: Option<Box<AppliedLimit>>,
        story: Option<Box<KeptRequest>>,
        took: Duration,
    ) -> Self {
        let (label, decider) = match pass.delay {
            Some((limit, _)) => (DecisionLabel::Delayed, Decider::Limit(limit)),
            None => (DecisionLabel::Allowed, Decider::Nothing),
        };
        let report = mem::take(&mut pass.report);
        Self { label, decider, report, applied_limit, story, took: Some(took), ..Self::undecided(pass.route) }
    }

    /// `denial` is final: its bans have begun.
    pub fn of_denial(
        denial: &mut Denial,
        applied_limit: Option<Box<AppliedLimit>>,
        story: Option<Box<KeptRequest>>,
        ban: Option<BanId>,
        took: Duration,
    ) -> Self {
        let decider = match (&denial.cause, denial.limit) {
            (DenialCause::Listed { list } | DenialCause::Challenged(ListChallenge { list, .. }), _) => {
                Decider::List(list.clone())
            }
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
            applied_limit,
            story,
            took: Some(took),
        }
    }

    /// The request was refused as malformed, or the application did not answer it.
    pub fn set_error(&mut self) {
        self.label = DecisionLabel::Error;
    }

    /// The request cannot be held, so the limit that would have held it denies it.
    pub fn set_denied_unheld(&mut self, denial: &Denial) {
        self.label = DecisionLabel::Denied;
        self.retry_after = retry_after(denial);
        if let Some(limit) = denial.limit {
            self.report.set_denied(limit);
            self.story.iter_mut().for_each(|story| story.set_denied(limit));
        }
    }
}

fn label(denial: &Denial) -> DecisionLabel {
    match (&denial.cause, denial.penalty) {
        (DenialCause::Listed { .. } | DenialCause::NotOnList, _) => DecisionLabel::Listed,
        (DenialCause::TooManyValues | DenialCause::DeniedDescriptor, _)
        | (DenialCause::Limited { .. }, Penalty::None) => DecisionLabel::Denied,
        (DenialCause::Banned, _) | (DenialCause::Limited { .. }, Penalty::Ban) => DecisionLabel::Banned,
        (DenialCause::Limited { .. }, Penalty::Tarpit(_)) => DecisionLabel::Tarpitted,
        (DenialCause::Challenged(_), _) | (DenialCause::Limited { .. }, Penalty::Challenge(_)) => {
            DecisionLabel::Challenged
        }
    }
}

/// The value of `Retry-After`: whole seconds, at least one.
fn retry_after(denial: &Denial) -> Option<u64> {
    match denial.cause {
        DenialCause::Limited { retry_after, .. } => retry_after.map(|wait| whole_seconds(wait).max(1)),
        _ => None,
    }
}
