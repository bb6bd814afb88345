//! The actions of a limit on a request that exceeds it.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};

use crate::wire::head::FieldName;
use crate::words::clock::Timestamp;
use crate::words::units::Span;
use crate::words::word::words;

/// The action of a limit that is reached, and the channels that it notifies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Then {
    pub action: Action,
    pub notify: Vec<ChannelId>,
}

/// The actions of a limit on a request that exceeds it.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Denies it, with the limit's own response or the route's.
    Deny(Option<Box<DenyResponse>>),
    /// Holds it for this long, then forwards it.
    Delay(Duration),
    /// Holds it for this long, then denies it.
    Tarpit(Duration),
    /// Bans the key: denies it for a while, independent of the count.
    Ban(Ladder),
    /// Denies it with a page. A proof of work resets the key.
    Challenge,
}

words! {
    /// What a challenged client has to solve.
    pub enum ChallengeKind {
        /// A proof of work.
        Pow = "pow",
    }
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

    /// Whether no request beyond the limit reaches the application. One that is delayed does, and one that solves its challenge.
    pub fn keeps_out(&self) -> bool {
        match self {
            Self::Deny(_) | Self::Tarpit(_) | Self::Ban(_) => true,
            Self::Delay(_) | Self::Challenge => false,
        }
    }
}

/// In the words of the configuration.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deny(_) => f.write_str("deny"),
            Self::Delay(span) => write!(f, "delay {}", Span(*span)),
            Self::Tarpit(span) => write!(f, "tarpit {}", Span(*span)),
            Self::Ban(ladder) => {
                f.write_str("ban")?;
                for (position, length) in ladder.lengths().iter().enumerate() {
                    let before = if position == 0 { " " } else { ", then " };
                    write!(f, "{before}{}", Span(*length))?;
                }
                Ok(())
            }
            Self::Challenge => f.write_str("challenge"),
        }
    }
}

impl Default for Action {
    fn default() -> Self {
        Self::Deny(None)
    }
}

/// How a denial looks. `None` means the default: [`STATUS`](Self::STATUS) with the built-in page or problem document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DenyResponse {
    pub status: Option<StatusCode>,
    pub body: Option<DenyBody>,
    pub headers: Vec<(FieldName, HeaderValue)>,
    /// `Location`. The status is then 303 unless another is given.
    pub redirect: Option<HeaderValue>,
}

impl DenyResponse {
    /// Where the configuration gives none.
    pub const STATUS: StatusCode = StatusCode::TOO_MANY_REQUESTS;
}

#[derive(Clone, Debug, PartialEq)]
pub enum DenyBody {
    /// Sent to every client as it is.
    Verbatim { content_type: HeaderValue, content: Bytes },
    /// An HTML page for browsers. Other clients get the problem document.
    Page(Bytes),
}

// How long a ban lasts: longer each time, and shorter again after a quiet time.

/// The lengths of successive bans. Further bans have the last length.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Ladder(Vec<Duration>);

/// The last ban of one key, and how many steps up the ladder it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rung {
    pub step: NonZeroU32,
    /// How long the last ban is, or was.
    pub length: Duration,
    /// When the last ban ends, or ended.
    pub until: Timestamp,
}

impl Ladder {
    /// `None` without any length.
    pub fn new(lengths: Vec<Duration>) -> Option<Self> {
        (!lengths.is_empty()).then_some(Self(lengths))
    }

    pub fn lengths(&self) -> &[Duration] {
        &self.0
    }

    /// The ban that begins now. A ban that still lasts stays as it is, so that a burst is one step. After it each quiet
    /// time as long as the ban is one step down.
    pub fn next(&self, before: Option<Rung>, now: Timestamp) -> Rung {
        let Some(before) = before else { return self.rung(0, now) };
        if now < before.until {
            return before;
        }
        let quiet = now.since(before.until).as_micros() / before.length.as_micros().max(1);
        let left = u128::from(before.step.get()).saturating_sub(quiet);
        self.rung(u32::try_from(left).unwrap_or(u32::MAX), now)
    }

    /// From when on a rung no longer affects the next ban.
    pub fn expires(rung: &Rung) -> Timestamp {
        rung.until + rung.length * rung.step.get()
    }

    fn rung(&self, steps: u32, now: Timestamp) -> Rung {
        let last = self.0.len() - 1;
        let place = (steps as usize).min(last);
        let length = self.0[place];
        // The step does not grow beyond the last length.
        let step = u32::try_from(place + 1).unwrap_or(u32::MAX);
        Rung { step: NonZeroU32::new(step).unwrap_or(NonZeroU32::MIN), length, until: now + length }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn ladder() -> Ladder {
        Ladder::new([10, 60, 600].map(Duration::from_secs).to_vec()).expect("three lengths")
    }

    #[test]
    fn each_further_ban_is_the_next_length() {
        let mut rung = None;
        let mut now = at(1000);
        for expected in [10, 60, 600, 600] {
            let next = ladder().next(rung, now);
            assert_eq!(next.until.since(now), Duration::from_secs(expected));
            now = next.until;
            rung = Some(next);
        }
    }

    #[test]
    fn while_a_ban_lasts_it_is_one_step() {
        let first = ladder().next(None, at(1000));
        assert_eq!(ladder().next(Some(first), at(1009)), first);
    }

    #[test]
    fn each_quiet_span_as_long_as_the_last_ban_is_one_step_down() {
        let first = ladder().next(None, at(1000));
        let second = ladder().next(Some(first), at(1010));
        assert_eq!(second.until, at(1070));
        let length = |quiet: u64| ladder().next(Some(second), at(1070 + quiet)).length.as_secs();
        assert_eq!([length(0), length(59), length(60), length(119), length(120)], [600, 600, 60, 60, 10]);
    }
}
