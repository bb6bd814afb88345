//! What a limit does when it is reached, as the configuration writes it.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::decision::Policy;
use crate::limit::Action;
use crate::limit::Limit;
use crate::units::Span;

/// `{"ban": ["15m", "1h"], "notify": ["ops"]}`
#[derive(Debug, Serialize)]
pub(super) struct ThenResponse<'p> {
    #[serde(flatten)]
    action: ActionResponse<'p>,
    notify: Vec<&'p str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum ActionResponse<'p> {
    Deny(DenyResponse<'p>),
    Delay(String),
    Tarpit(String),
    Ban(Vec<String>),
    Challenge(&'static str),
}

/// How the limit's own denial response differs from the usual one.
#[derive(Debug, Default, Serialize)]
struct DenyResponse<'p> {
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    redirect: Option<&'p str>,
}

impl<'p> ThenResponse<'p> {
    pub(super) fn of(policy: &'p Policy, limit: &'p Limit) -> Self {
        let channels = limit.then.notify.iter().filter_map(|id| policy.channels.get(usize::from(id.0)));
        Self { action: action_response(&limit.then.action), notify: channels.map(Arc::as_ref).collect() }
    }
}

fn action_response(action: &Action) -> ActionResponse<'_> {
    match action {
        Action::Deny(None) => ActionResponse::Deny(DenyResponse::default()),
        Action::Deny(Some(own)) => ActionResponse::Deny(DenyResponse {
            status: own.status.map(|status| status.as_u16()),
            redirect: own.redirect.as_ref().and_then(|target| target.to_str().ok()),
        }),
        Action::Delay(span) => ActionResponse::Delay(span_text(*span)),
        Action::Tarpit(span) => ActionResponse::Tarpit(span_text(*span)),
        Action::Ban(ladder) => ActionResponse::Ban(ladder.lengths().iter().copied().map(span_text).collect()),
        Action::Challenge => ActionResponse::Challenge("pow"),
    }
}

fn span_text(span: Duration) -> String {
    Span(span).to_string()
}
