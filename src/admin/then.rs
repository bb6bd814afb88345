//! What a limit does when it is reached, in the words of the configuration.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::decision::Policy;
use crate::limit::Action;
use crate::limit::Limit;
use crate::units::Span;

/// `{"ban": ["15m", "1h"], "notify": ["ops"]}`
#[derive(Debug, Serialize)]
pub(super) struct Described<'p> {
    #[serde(flatten)]
    action: Named<'p>,
    notify: Vec<&'p str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Named<'p> {
    Deny(Response<'p>),
    Delay(String),
    Tarpit(String),
    Ban(Vec<String>),
    Challenge(&'static str),
}

/// What of a response of its own tells it from the usual one.
#[derive(Debug, Default, Serialize)]
struct Response<'p> {
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    redirect: Option<&'p str>,
}

pub(super) fn describe<'p>(policy: &'p Policy, limit: &'p Limit) -> Described<'p> {
    let channels = limit.then.notify.iter().filter_map(|id| policy.channels.get(usize::from(id.0)));
    Described { action: named(&limit.then.action), notify: channels.map(Arc::as_ref).collect() }
}

fn named(action: &Action) -> Named<'_> {
    match action {
        Action::Deny(None) => Named::Deny(Response::default()),
        Action::Deny(Some(own)) => Named::Deny(Response {
            status: own.status.map(|status| status.as_u16()),
            redirect: own.redirect.as_ref().and_then(|target| target.to_str().ok()),
        }),
        Action::Delay(span) => Named::Delay(words(*span)),
        Action::Tarpit(span) => Named::Tarpit(words(*span)),
        Action::Ban(ladder) => Named::Ban(ladder.lengths().iter().copied().map(words).collect()),
        Action::Challenge => Named::Challenge("pow"),
    }
}

fn words(span: Duration) -> String {
    Span(span).to_string()
}
