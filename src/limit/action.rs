//! What happens to a request beyond a limit.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderName;
use http::HeaderValue;
use http::StatusCode;

use super::Ladder;

/// What a limit does when it is reached, and who is told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Then {
    pub action: Action,
    pub notify: Vec<ChannelId>,
}

/// What becomes of a request beyond a limit.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Denied, with a response of its own or the route's.
    Deny(Option<Box<DenyResponse>>),
    /// Held for so long, then forwarded.
    Delay(Duration),
    /// Held for so long, then denied.
    Tarpit(Duration),
    /// The key is denied for a while, whatever was counted.
    Ban(Ladder),
    /// Denied with a page whose proof of work buys one budget.
    Challenge,
}

/// The position of a channel in the `notify` section.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ChannelId(pub u16);

/// How severe an action is; the severest of those that apply decides.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum ActionSeverity {
    Delay,
    Challenge,
    Tarpit,
    Deny,
    Ban,
}

impl Action {
    pub fn severity(&self) -> ActionSeverity {
        match self {
            Self::Deny(_) => ActionSeverity::Deny,
            Self::Delay(_) => ActionSeverity::Delay,
            Self::Tarpit(_) => ActionSeverity::Tarpit,
            Self::Ban(_) => ActionSeverity::Ban,
            Self::Challenge => ActionSeverity::Challenge,
        }
    }
}

impl Default for Action {
    fn default() -> Self {
        Self::Deny(None)
    }
}

/// How a denial looks. What is `None` is as everywhere else: 429 with the built-in page or problem document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DenyResponse {
    pub status: Option<StatusCode>,
    pub body: Option<DenyBody>,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// `Location`; the status is 303 unless another is given.
    pub redirect: Option<HeaderValue>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum DenyBody {
    /// Sent as it is, to everyone.
    Verbatim { content_type: HeaderValue, content: Bytes },
    /// An HTML page for browsers; programs get the problem document.
    Page(Bytes),
}
