//! Batches as invocations of a Lua script.

use std::time::Duration;

use super::Time;
use crate::clock::Timestamp;
use crate::decision::Charge;
use crate::key::KeyHash;

/// How long slots in flight stay taken when their holder says no more.
pub const LEASE: Duration = Duration::from_secs(30);

/// A script, and its name in the server.
#[derive(Debug)]
pub struct Script {
    pub text: String,
    /// The SHA-1 of the text, in hexadecimal.
    pub sha: String,
}

/// One command for one server: all its keys are in one slot.
#[derive(Debug)]
pub struct Invocation {
    pub script: &'static Script,
    /// `EVALSHA`, the script's name, keys and arguments.
    pub command: redis::Cmd,
}

/// What is done about charges.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Purpose {
    /// Charge all, or none but the attempts.
    Decide,
    /// Another server has denied the request already: charge attempts, and what shadows count alone.
    Deny,
    /// Say where the keys stand, and charge nothing.
    Look,
}

/// A slice of a batch whose keys are in one slot.
#[derive(Clone, Copy, Debug)]
pub struct Group<'g, 'p> {
    pub prefix: &'g str,
    pub time: &'g Time,
    /// Who holds slots in flight: a number of this process' own.
    pub holder: u32,
    pub charges: &'g [&'g Charge<'p>],
}

/// Slots in flight whose keys are in one slot of the cluster.
#[derive(Clone, Copy, Debug)]
pub struct Held<'h> {
    pub prefix: &'h str,
    pub time: &'h Time,
    /// Under which number they were taken.
    pub holder: u32,
    /// A key once for each of its slots that is meant.
    pub keys: &'h [KeyHash],
}

/// The name of a key in Redis: `{prefix}:{32 hex digits}`.
pub fn name(prefix: &str, key: KeyHash) -> String {
    format!("{prefix}:{:032x}", key.0)
}

impl Group<'_, '_> {
    /// Decides the group, or looks at it. [`answer::read`](super::answer::read) reads what comes of it.
    pub fn invocation(&self, _purpose: Purpose) -> Invocation {
        todo!()
    }

    /// Takes back what was charged; `moments` are those of the rulings, one for each charge of the group. Answers
    /// nothing of interest.
    pub fn give_back(&self, _moments: &[Timestamp]) -> Invocation {
        todo!()
    }
}

impl Held<'_> {
    /// Gives the slots back. Answers nothing of interest.
    pub fn settle(&self) -> Invocation {
        todo!()
    }

    /// Holds them for another [`LEASE`]. Answers nothing of interest; what was lost meanwhile stays lost.
    pub fn renew(&self) -> Invocation {
        todo!()
    }
}

/// Forgets what was counted under these keys of one slot of the cluster; slots in flight stay taken.
pub fn forget(_prefix: &str, _keys: &[KeyHash]) -> Invocation {
    todo!()
}

/// A real decision about a key of this name that is written whatever comes of it: whether the server can serve.
pub fn probe(_name: &str, _time: &Time) -> Invocation {
    todo!()
}
