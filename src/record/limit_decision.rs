//! What a limit made of a request, as metrics, the history and stories name it.

use crate::limit::ActionSeverity;

/// What a limit made of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::record) enum LimitDecision {
    Allowed,
    Denied,
    /// The key is banned, by this request, before it or by an operator.
    Banned,
    Tarpitted,
    Challenged,
    Delayed,
    ShadowAllowed,
    ShadowDenied,
}

impl LimitDecision {
    pub(in crate::record) const COUNT: usize = 8;

    /// `applied`: what the limit does to the request; `None`: it lets it pass.
    pub(in crate::record) fn of(shadow: bool, applied: Option<ActionSeverity>) -> Self {
        match applied {
            None if shadow => Self::ShadowAllowed,
            None => Self::Allowed,
            Some(_) if shadow => Self::ShadowDenied,
            Some(ActionSeverity::Deny) => Self::Denied,
            Some(ActionSeverity::Ban) => Self::Banned,
            Some(ActionSeverity::Tarpit) => Self::Tarpitted,
            Some(ActionSeverity::Challenge) => Self::Challenged,
            Some(ActionSeverity::Delay) => Self::Delayed,
        }
    }

    pub(in crate::record) fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Banned => "banned",
            Self::Tarpitted => "tarpitted",
            Self::Challenged => "challenged",
            Self::Delayed => "delayed",
            Self::ShadowAllowed => "shadow_allowed",
            Self::ShadowDenied => "shadow_denied",
        }
    }
}
