//! What a limit does when it is reached, as the configuration writes it.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use utoipa::ToSchema;

use crate::decision::Policy;
use crate::limit::Action;
use crate::limit::Limit;
use crate::secret;
use crate::units::Span;

/// What the limit does when it is reached, as the configuration writes it: one of `deny`, `delay`, `tarpit`, `ban` and
/// `challenge`.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(super) struct ThenResponse<'p> {
    /// Not empty where the limit has a response of its own.
    #[schema(inline, nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    deny: Option<DenyResponse>,
    /// How long at most: `20s`.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<String>,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    tarpit: Option<String>,
    /// The ladder: how long the first ban lasts, the second, ...
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    ban: Option<Vec<String>>,
    #[schema(inline, nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    challenge: Option<ChallengeWord>,
    /// The channels to notify.
    notify: Vec<&'p str>,
}

/// How the limit's own denial response differs from the usual one.
#[derive(Debug, Default, Serialize, ToSchema)]
struct DenyResponse {
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    redirect: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ChallengeWord {
    Pow,
}

impl<'p> ThenResponse<'p> {
    pub(super) fn of(policy: &'p Policy, limit: &'p Limit) -> Self {
        let channels = limit.then.notify.iter().filter_map(|id| policy.channels.get(usize::from(id.0)));
        let then = Self { notify: channels.map(Arc::as_ref).collect(), ..Self::default() };
        match &limit.then.action {
            Action::Deny(None) => Self { deny: Some(DenyResponse::default()), ..then },
            Action::Deny(Some(own)) => {
                let status = own.status.map(|status| status.as_u16());
                let redirect = own.redirect.as_ref().and_then(|target| target.to_str().ok()).map(secret::hidden);
                Self { deny: Some(DenyResponse { status, redirect }), ..then }
            }
            Action::Delay(span) => Self { delay: Some(span_text(*span)), ..then },
            Action::Tarpit(span) => Self { tarpit: Some(span_text(*span)), ..then },
            Action::Ban(ladder) => {
                Self { ban: Some(ladder.lengths().iter().copied().map(span_text).collect()), ..then }
            }
            Action::Challenge => Self { challenge: Some(ChallengeWord::Pow), ..then },
        }
    }
}

fn span_text(span: Duration) -> String {
    Span(span).to_string()
}
