//! Batches as invocations of a Lua script.

use super::Time;
use crate::decision::Charge;

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

impl Group<'_, '_> {
    pub fn invocation(&self, _purpose: Purpose) -> Invocation {
        todo!()
    }
}
