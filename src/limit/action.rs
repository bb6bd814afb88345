//! What a limit does with a request beyond it.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use http::StatusCode;

use super::Ladder;
use crate::head::FieldName;

/// What a limit does when it is reached, and which channels it notifies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Then {
    pub action: Action,
    pub notify: Vec<ChannelId>,
}

/// What a limit does with a request beyond it.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Denies it, with a response of its own or that of the route.
    Deny(Option<Box<DenyResponse>>),
    /// Holds it for this long, then forwards it.
    Delay(Duration),
    /// Holds it for this long, then denies it.
    Tarpit(Duration),
    /// Bans the key: denies it for a while, whatever was counted.
    Ban(Ladder),
    /// Denies it with a page. A proof of work resets the key.
    Challenge,
}

/// The position of a channel in the `notify` section.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ChannelId(pub u16);

/// How severe an action is. The severest of several actions decides.
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

/// How a denial looks. `None` means the default: 429 with the built-in page or problem document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DenyResponse {
    pub status: Option<StatusCode>,
    pub body: Option<DenyBody>,
    pub headers: Vec<(FieldName, HeaderValue)>,
    /// `Location`. The status is then 303 unless another is given.
    pub redirect: Option<HeaderValue>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum DenyBody {
    /// Sent to every client as it is.
    Verbatim { content_type: HeaderValue, content: Bytes },
    /// An HTML page for browsers. Other clients get the problem document.
    Page(Bytes),
}
