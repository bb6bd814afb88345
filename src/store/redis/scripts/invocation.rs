//! Calls of scripts, as commands for one server.

use std::num::NonZeroU32;
use std::time::Duration;

use smallvec::SmallVec;

use super::constants::LEASE;
use super::constants::Purpose;
use super::encode;
use super::text;
use super::text::Deciding;
use super::text::Script;
use crate::decision::Charge;
use crate::decision::batch::Charged;
use crate::decision::batch::KnownClientKey;
use crate::key::KeyHash;
use crate::limit::Rule;
use crate::signing::key_ring::ROTATION_PERIOD;
use crate::store::leases::LeaseRequest;
use crate::store::leases::ReturnedLease;
use crate::store::redis::key_names::KeyNames;
use crate::store::redis::settings::Time;

/// One call of a script on one server: all its keys are in one hash slot.
#[derive(Debug)]
pub struct Invocation {
    pub script: &'static Script,
    /// `EVALSHA`, the hash of the script, keys and arguments.
    pub command: redis::Cmd,
}

/// The charges of a batch whose keys are in one hash slot.
#[derive(Clone, Copy, Debug)]
pub struct DecisionCall<'g, 'p> {
    pub names: KeyNames<'g>,
    pub time: &'g Time,
    /// The number under which this process takes slots.
    pub holder: u32,
    pub charges: &'g [&'g Charge<'p>],
    /// The client is known if each of these is known. Their keys are in the same hash slot. Empty if no charge depends
    /// on it.
    pub known: &'g [KnownClientKey],
    /// `None`: no key has leases, because keys of one call may be in different hash slots.
    pub leases: Option<LeaseQuestions<'g>>,
}

/// What a call asks about leases.
#[derive(Clone, Copy, Debug)]
pub struct LeaseQuestions<'g> {
    /// How many gateways share the store, as far as this one knows.
    pub nodes: NonZeroU32,
    /// For each charge. Empty: the call only counts what is leased.
    pub requests: &'g [Option<LeaseRequest>],
}

/// A settlement of one key.
#[derive(Clone, Copy, Debug)]
pub struct KeySettlement<'e> {
    pub key: KeyHash,
    pub action: SettlementAction<'e>,
}

#[derive(Clone, Copy, Debug)]
pub enum SettlementAction<'e> {
    /// Gives back slots that were taken under this number.
    Release { holder: u32, slots: u32 },
    /// Takes back a charge.
    TakeBack { rule: &'e Rule, charged: &'e Charged },
    /// Charges now, whether or not there is room.
    Charge { rule: &'e Rule, items: &'e [u64] },
    /// Resets the key. Slots in flight stay taken.
    Reset,
    /// Makes the client known from now on.
    Remember { client: u64, most: NonZeroU32, keep: Duration },
}

/// Slots in flight whose leases are renewed. Their keys are in one hash slot.
#[derive(Clone, Copy, Debug)]
pub struct SlotLeases<'h> {
    pub names: KeyNames<'h>,
    /// The number under which they were taken.
    pub holder: u32,
    /// Each key once for each of its slots.
    pub keys: &'h [KeyHash],
}

impl DecisionCall<'_, '_> {
    /// The call that decides the charges, or looks at them. [`answer::read`](super::answer::read) reads its answer.
    pub fn invocation(&self, purpose: Purpose) -> Invocation {
        let depends_on_known = !self.known.is_empty();
        let may_be_leased = |charge: &Charge<'_>| self.leases.is_some() && charge.rule.may_be_leased();
        let leased: SmallVec<[usize; 4]> =
            (0..self.charges.len()).filter(|place| may_be_leased(self.charges[*place])).collect();
        let script = text::deciding(Deciding {
            kinds: text::kinds(self.charges.iter().map(|charge| charge.rule)),
            depends_on_known,
            has_leases: !leased.is_empty(),
        });
        let mut command = redis::cmd("EVALSHA");
        command.arg(&script.sha).arg(self.charges.len() + leased.len() + self.known.len());
        self.charges.iter().for_each(|charge| _ = command.arg(self.names.name(charge.key)));
        leased.iter().for_each(|place| _ = command.arg(self.names.leases_name(self.charges[*place].key)));
        self.known.iter().for_each(|known| _ = command.arg(self.names.name(known.subject)));
        command.arg(purpose.letter());
        for charge in self.charges {
            command.arg(encode::charge(charge, depends_on_known, self.holder, self.time).as_slice());
        }
        if let Some(LeaseQuestions { nodes, requests }) = self.leases {
            for place in leased {
                let request = requests.get(place).and_then(Option::as_ref);
                let is_slots = self.charges[place].is_slot();
                command.arg(encode::lease(place + 1, nodes, request, is_slots).as_slice());
            }
        }
        self.known.iter().for_each(|known| _ = command.arg(&known.client.to_be_bytes()));
        with_time(&mut command, self.time);
        Invocation { script, command }
    }
}

impl SlotLeases<'_> {
    /// The call that renews the leases for another [`LEASE`]. Its answer is not used: a slot that Redis has lost stays
    /// lost.
    pub fn renew(&self) -> Invocation {
        let script = text::renewing();
        let mut command = command_of(script, self.names, self.keys.len(), self.keys.iter().copied());
        command.arg(self.holder).arg(LEASE.as_micros().to_string());
        Invocation { script, command }
    }
}

/// The call that ends a lease of a key and gives back what is left of it. The script publishes on `channel` that the key has
/// room again.
pub fn return_lease(names: KeyNames<'_>, channel: &str, time: &Time, lease: &ReturnedLease) -> Invocation {
    let ReturnedLease { key, rule, ended, holder } = lease;
    let key = *key;
    if rule.is_slots() {
        let action = SettlementAction::Release { holder: *holder, slots: ended.unspent };
        return settle(names, channel, time, &[KeySettlement { key, action }]);
    }
    let script = text::returning_lease(text::kinds([rule].into_iter()));
    let mut command = redis::cmd("EVALSHA");
    command.arg(&script.sha).arg(2).arg(names.name(key)).arg(names.leases_name(key));
    command.arg(encode::charge_alone(rule, time).as_slice()).arg(encode::ended_lease(ended).as_slice()).arg(channel);
    with_time(&mut command, time);
    Invocation { script, command }
}

/// The call that settles keys of one hash slot. The script publishes on `channel` which keys were reset and which have
/// room again, see [`Resets`](crate::store::resets::Resets). [`answer::settled`](super::answer::settled) reads its
/// answer.
pub fn settle(names: KeyNames<'_>, channel: &str, time: &Time, entries: &[KeySettlement<'_>]) -> Invocation {
    let counted = entries.iter().filter_map(|entry| match entry.action {
        SettlementAction::TakeBack { rule, .. } | SettlementAction::Charge { rule, .. } => Some(rule),
        SettlementAction::Release { .. } | SettlementAction::Reset | SettlementAction::Remember { .. } => None,
    });
    let script = text::settling(text::kinds(counted));
    let mut command = command_of(script, names, entries.len(), entries.iter().map(|entry| entry.key));
    for entry in entries {
        let bytes = match entry.action {
            SettlementAction::Release { holder, slots } => encode::release(holder, slots),
            SettlementAction::TakeBack { rule, charged } => encode::take_back(rule, charged, time),
            SettlementAction::Charge { rule, items } => encode::charge_now(rule, items, time),
            SettlementAction::Reset => encode::reset(),
            SettlementAction::Remember { client, most, keep } => encode::remember(client, most, keep),
        };
        command.arg(bytes.as_slice());
    }
    command.arg(channel);
    with_time(&mut command, time);
    Invocation { script, command }
}

/// The call that asks whether all of these known clients are known; their keys are in one hash slot. It answers 1 or 0.
pub fn is_known(names: KeyNames<'_>, time: &Time, known: &[KnownClientKey]) -> Invocation {
    let script = text::is_known();
    let mut command = command_of(script, names, known.len(), known.iter().map(|known| known.subject));
    command.arg(Purpose::Look.letter());
    for known_client in known {
        command.arg(&known_client.client.to_be_bytes());
    }
    with_time(&mut command, time);
    Invocation { script, command }
}

/// The name of the key with the signing keys of all gateways.
pub(in crate::store::redis) fn keyring_name(prefix: &str) -> String {
    format!("{prefix}:keyring")
}

/// The call that answers the signing keys under this name. If a new one is due, the script adds `candidate` first.
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

/// The call that probes a server: a real decision about a key of this name, which always writes.
pub fn probe(name: &str) -> Invocation {
    let script = text::probing();
    let mut command = redis::cmd("EVALSHA");
    command.arg(&script.sha).arg(1).arg(name).arg(Purpose::Decide.letter()).arg(encode::probe().as_slice());
    Invocation { script, command }
}

fn command_of(script: &Script, names: KeyNames<'_>, count: usize, keys: impl Iterator<Item = KeyHash>) -> redis::Cmd {
    let mut command = redis::cmd("EVALSHA");
    command.arg(&script.sha).arg(count);
    keys.for_each(|key| _ = command.arg(names.name(key)));
    command
}

/// Gateways by the clock of the server say nothing.
pub(super) fn with_time(command: &mut redis::Cmd, time: &Time) {
    if let Time::Given(clock) = time {
        command.arg(clock.now().as_micros());
    }
}
