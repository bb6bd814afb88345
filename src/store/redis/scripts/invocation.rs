//! What is decided and settled, as commands for one server.

use std::num::NonZeroU32;
use std::time::Duration;

use super::constants::KEY_DIGITS;
use super::constants::LEASE;
use super::constants::Purpose;
use super::encode;
use super::text;
use super::text::Script;
use crate::decision::Charge;
use crate::decision::batch::Charged;
use crate::decision::batch::KnownClientKey;
use crate::key::KeyHash;
use crate::limit::Rule;
use crate::signing::key_ring::ROTATION_PERIOD;
use crate::store::redis::settings::Time;

/// One command for one server: all its keys are in one slot.
#[derive(Debug)]
pub struct Invocation {
    pub script: &'static Script,
    /// `EVALSHA`, the script's name, keys and arguments.
    pub command: redis::Cmd,
}

/// A slice of a batch whose keys are in one slot.
#[derive(Clone, Copy, Debug)]
pub struct Group<'g, 'p> {
    pub prefix: &'g str,
    pub time: &'g Time,
    /// Who holds slots in flight: a number of this process' own.
    pub holder: u32,
    pub charges: &'g [&'g Charge<'p>],
    /// The client is known when it is so for each of these, whose keys are in the same slot; empty where nobody asks.
    pub known: &'g [KnownClientKey],
}

/// What is settled about one key.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'e> {
    pub key: KeyHash,
    pub what: What<'e>,
}

#[derive(Clone, Copy, Debug)]
pub enum What<'e> {
    /// A slot in flight comes back that was taken under this number.
    Release { holder: u32 },
    /// What was charged counts no more.
    TakeBack { rule: &'e Rule, charged: &'e Charged },
    /// Counted now, whether or not there is room.
    Charge { rule: &'e Rule, items: &'e [u64] },
    /// What was counted is reset; slots in flight stay taken.
    Reset,
    /// The client is known from now on.
    Remember { client: u64, most: NonZeroU32, keep: Duration },
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
    format!("{prefix}:{:0KEY_DIGITS$x}", key.0)
}

impl Group<'_, '_> {
    /// Decides the group, or looks at it. [`answer::read`](super::answer::read) reads what comes of it.
    pub fn invocation(&self, purpose: Purpose) -> Invocation {
        let heeds_known = !self.known.is_empty();
        let script = text::deciding(text::kinds(self.charges.iter().map(|charge| charge.rule)), heeds_known);
        let keys = self.charges.iter().map(|charge| charge.key);
        let subjects = self.known.iter().map(|known| known.subject);
        let mut command = called(script, self.prefix, self.charges.len() + self.known.len(), keys.chain(subjects));
        command.arg(purpose.letter());
        for charge in self.charges {
            command.arg(encode::charge(charge, heeds_known, self.holder, self.time).as_slice());
        }
        self.known.iter().for_each(|known| _ = command.arg(&known.client.to_be_bytes()));
        with_time(&mut command, self.time);
        Invocation { script, command }
    }
}

impl Held<'_> {
    /// Holds them for another [`LEASE`]. Answers nothing of interest; what was lost meanwhile stays lost.
    pub fn renew(&self) -> Invocation {
        let script = text::renewing();
        let mut command = called(script, self.prefix, self.keys.len(), self.keys.iter().copied());
        command.arg(self.holder).arg(LEASE.as_micros().to_string());
        Invocation { script, command }
    }
}

/// Settles what is in one slot of the cluster. What was reset, and what has room again though it had none, is told on
/// this channel, see [`Resets`](crate::store::resets::Resets). [`answer::settled`](super::answer::settled) reads what
/// comes of it.
pub fn settle(prefix: &str, channel: &str, time: &Time, entries: &[Entry<'_>]) -> Invocation {
    let counted = entries.iter().filter_map(|entry| match entry.what {
        What::TakeBack { rule, .. } | What::Charge { rule, .. } => Some(rule),
        What::Release { .. } | What::Reset | What::Remember { .. } => None,
    });
    let script = text::settling(text::kinds(counted));
    let mut command = called(script, prefix, entries.len(), entries.iter().map(|entry| entry.key));
    for entry in entries {
        let bytes = match entry.what {
            What::Release { holder } => encode::release(holder),
            What::TakeBack { rule, charged } => encode::take_back(rule, charged, time),
            What::Charge { rule, items } => encode::charge_now(rule, items, time),
            What::Reset => encode::reset(),
            What::Remember { client, most, keep } => encode::remember(client, most, keep),
        };
        command.arg(bytes.as_slice());
    }
    command.arg(channel);
    with_time(&mut command, time);
    Invocation { script, command }
}

/// Asks whether the client is known for each of these, whose keys are in one slot: answers 1 or 0.
pub fn knows(prefix: &str, time: &Time, known: &[KnownClientKey]) -> Invocation {
    let script = text::knowing();
    let mut command = called(script, prefix, known.len(), known.iter().map(|known| known.subject));
    command.arg(Purpose::Look.letter());
    for known_client in known {
        command.arg(&known_client.client.to_be_bytes());
    }
    with_time(&mut command, time);
    Invocation { script, command }
}

/// Where the keys are kept that all gateways sign with.
pub(in crate::store::redis) fn keyring_name(prefix: &str) -> String {
    format!("{prefix}:keyring")
}

/// Answers the keys that are kept under this name, with `candidate` before them where a new one is due.
pub fn keyring(name: &str, candidate: &[u8; 32], time: &Time) -> Invocation {
    let script = text::keyring();
    let mut command = redis::cmd("EVALSHA");
    command.arg(&script.sha).arg(1).arg(name).arg(candidate.as_slice());
    command.arg(ROTATION_PERIOD.as_micros().to_string());
    if let Time::Given(clock) = time {
        command.arg(clock.now().as_micros());
    }
    Invocation { script, command }
}

/// A real decision about a key of this name that is written whatever comes of it: whether the server can serve.
pub fn probe(name: &str) -> Invocation {
    let script = text::probing();
    let mut command = redis::cmd("EVALSHA");
    command.arg(&script.sha).arg(1).arg(name).arg(Purpose::Decide.letter()).arg(encode::probe().as_slice());
    Invocation { script, command }
}

fn called(script: &Script, prefix: &str, count: usize, keys: impl Iterator<Item = KeyHash>) -> redis::Cmd {
    let mut command = redis::cmd("EVALSHA");
    command.arg(&script.sha).arg(count);
    keys.for_each(|key| _ = command.arg(name(prefix, key)));
    command
}

fn with_time(command: &mut redis::Cmd, time: &Time) {
    if let Time::Given(clock) = time {
        command.arg(clock.now().as_micros());
    }
}
