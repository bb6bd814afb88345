//! Batches as invocations of Lua scripts, which decide in Redis what [`State`](crate::limit::State) decides in memory.

mod encode;
mod text;

use std::time::Duration;

use self::encode::Moment;
pub use self::text::Script;
use super::Time;
use crate::client::keyring::MOST_KEYS;
use crate::client::keyring::PERIOD;
use crate::clock::Timestamp;
use crate::decision::Charge;
use crate::key::KeyHash;

/// How long slots in flight stay taken when their holder says no more.
pub const LEASE: Duration = Duration::from_secs(30);

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
    pub fn invocation(&self, purpose: Purpose) -> Invocation {
        let script = text::deciding(self.charges.iter().map(|charge| charge.rule));
        let mut command = called(script, self.prefix, self.charges.iter().map(|charge| charge.key));
        command.arg(match purpose {
            Purpose::Decide => "D",
            Purpose::Deny => "N",
            Purpose::Look => "L",
        });
        for charge in self.charges {
            command.arg(encode::charge(charge, self.holder, self.time).as_slice());
        }
        if let Time::Given(clock) = self.time {
            command.arg(clock.now().as_micros());
        }
        Invocation { script, command }
    }

    /// Takes back what was charged; `moments` are those of the rulings, one for each charge of the group. Answers
    /// nothing of interest.
    pub fn give_back(&self, moments: &[Timestamp]) -> Invocation {
        let script = text::giving_back();
        let mut command = called(script, self.prefix, self.charges.iter().map(|charge| charge.key));
        for (charge, moment) in self.charges.iter().zip(moments) {
            command.arg(encode::charged(charge, self.holder, Moment(*moment)).as_slice());
        }
        Invocation { script, command }
    }
}

impl Held<'_> {
    /// Gives the slots back. Answers nothing of interest.
    pub fn settle(&self) -> Invocation {
        let script = text::settling();
        let mut command = called(script, self.prefix, self.keys.iter().copied());
        command.arg(self.holder);
        Invocation { script, command }
    }

    /// Holds them for another [`LEASE`]. Answers nothing of interest; what was lost meanwhile stays lost.
    pub fn renew(&self) -> Invocation {
        let script = text::renewing();
        let mut command = called(script, self.prefix, self.keys.iter().copied());
        command.arg(self.holder).arg(LEASE.as_micros().to_string());
        Invocation { script, command }
    }
}

/// Forgets what was counted under these keys of one slot of the cluster; slots in flight stay taken.
pub fn forget(prefix: &str, keys: &[KeyHash]) -> Invocation {
    let script = text::forgetting();
    Invocation { script, command: called(script, prefix, keys.iter().copied()) }
}

/// Answers the keys that are kept under this name, with `candidate` before them where a new one is due.
pub fn keyring(name: &str, candidate: &[u8; 32], time: &Time) -> Invocation {
    let script = text::keyring();
    let mut command = redis::cmd("EVALSHA");
    command.arg(&script.sha).arg(1).arg(name).arg(candidate.as_slice());
    command.arg(PERIOD.as_micros().to_string()).arg(MOST_KEYS);
    if let Time::Given(clock) = time {
        command.arg(clock.now().as_micros());
    }
    Invocation { script, command }
}

/// A real decision about a key of this name that is written whatever comes of it: whether the server can serve.
pub fn probe(name: &str) -> Invocation {
    let script = text::probing();
    let mut command = redis::cmd("EVALSHA");
    command.arg(&script.sha).arg(1).arg(name).arg("D").arg(encode::probe().as_slice());
    Invocation { script, command }
}

fn called(script: &Script, prefix: &str, keys: impl ExactSizeIterator<Item = KeyHash>) -> redis::Cmd {
    let mut command = redis::cmd("EVALSHA");
    command.arg(&script.sha).arg(keys.len());
    keys.for_each(|key| _ = command.arg(name(prefix, key)));
    command
}

#[cfg(test)]
mod tests;
