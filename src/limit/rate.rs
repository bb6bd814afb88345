//! The rate grammar: `10/minute`, `10 per 3 minutes`, `1/second; 20/minute`.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

/// So many in a window of time. The window is at least a second and never zero.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Rate {
    pub count: NonZeroU32,
    pub per: Duration,
}

/// One or several rates that pass together.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rates(Box<[Rate]>);

impl Rates {
    pub fn iter(&self) -> std::slice::Iter<'_, Rate> {
        self.0.iter()
    }
}

impl FromStr for Rates {
    type Err = InvalidRate;
    fn from_str(_text: &str) -> Result<Self, InvalidRate> {
        todo!()
    }
}

impl fmt::Display for Rates {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        todo!()
    }
}

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidRate {
    #[error("a rate needs a count above zero")]
    Zero,
    #[error("unknown unit `{0}`, expected second, minute, hour, day, week, month or year")]
    UnknownUnit(String),
    #[error("`{0}` is not a rate, write a count and a window such as `10/minute` or `10 per 3 minutes`")]
    Malformed(String),
}
