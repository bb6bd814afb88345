//! Calls of scripts, as commands for one server.

use std::num::NonZeroU32;
use std::time::Duration;

use redis::Value;
use smallvec::SmallVec;

use super::constants::{LEASE, Purpose};
use super::text::{Deciding, Script};
use super::{encode, text};
use crate::rules::decision::batch::{Charged, Items, KnownClientKey, Ledger};
use crate::rules::decision::{Charge, Grounds, Verdict};
use crate::rules::key::KeyHash;
use crate::rules::limit::{Rule, Standing, Standings};
use crate::store::leases::{LeaseRequest, ReturnedLease};
use crate::store::parts::{PartAnswer, PartCall};
use crate::store::redis::scripts::constants::AnswerCode;
use crate::store::redis::settings::{KeyNames, Time};
use crate::words::clock::Timestamp;
use crate::words::signing::ROTATION_PERIOD;

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
    /// The call that decides the charges, or looks at them. [`answer::read`](read) reads its answer.
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
        let mut command = script.call(self.charges.len() + leased.len() + self.known.len());
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
    let mut command = script.call(2);
    command.arg(names.name(key)).arg(names.leases_name(key));
    command.arg(encode::charge_alone(rule, time).as_slice()).arg(encode::ended_lease(ended).as_slice()).arg(channel);
    with_time(&mut command, time);
    Invocation { script, command }
}

/// The call that settles keys of one hash slot. The script publishes on `channel` which keys were reset and which have
/// room again, see [`Resets`](crate::store::key_ring::Resets). [`answer::settled`](settled) reads its
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
    let mut command = script.call(1);
    command.arg(name).arg(candidate.as_slice());
    command.arg(ROTATION_PERIOD.as_micros().to_string());
    if let Time::Given(clock) = time {
        command.arg(clock.now().as_micros());
    }
    Invocation { script, command }
}

/// The name of the table with the parts of all gateways.
pub(in crate::store::redis) fn parts_name(prefix: &str) -> String {
    format!("{prefix}:parts")
}

/// The call of a gateway about its part; [`part_answer`] reads its answer.
pub(in crate::store::redis) fn part_call(name: &str, time: &Time, call: &PartCall) -> Invocation {
    let script = text::parts();
    let mut command = script.call(1);
    let held = call.held.map_or_else(|| "-1".to_owned(), |held| held.to_string());
    command.arg(name).arg(format!("{} {} {held}", call.gateway, call.number));
    command.arg(call.over.join(" "));
    with_time(&mut command, time);
    Invocation { script, command }
}

/// `None`: this is no answer of the script.
pub(in crate::store::redis) fn part_answer(value: &Value) -> Option<PartAnswer> {
    let Value::Array(words) = value else { return None };
    let (numbers, neighbours) = words.split_first_chunk::<5>()?;
    let [Value::Int(units), Value::Int(fair), Value::Int(gateways), Value::Int(changed), Value::Int(quiet_for)] =
        numbers
    else {
        return None;
    };
    let name = |word: &Value| match word {
        Value::BulkString(bytes) => String::from_utf8(bytes.clone()).ok(),
        _ => None,
    };
    Some(PartAnswer {
        units: u64::try_from(*units).ok()?,
        fair: u64::try_from(*fair).ok()?,
        gateways: u32::try_from(*gateways).ok()?,
        has_changed: *changed == 1,
        quiet_for: Duration::from_micros(u64::try_from(*quiet_for).ok()?),
        neighbours: neighbours.iter().filter_map(name).collect(),
    })
}

/// The call that probes a server: a real decision about a key of this name, which always writes.
pub fn probe(name: &str) -> Invocation {
    let script = text::probing();
    let mut command = script.call(1);
    command.arg(name).arg(Purpose::Decide.letter()).arg(encode::probe().as_slice());
    Invocation { script, command }
}

fn command_of(script: &Script, names: KeyNames<'_>, count: usize, keys: impl Iterator<Item = KeyHash>) -> redis::Cmd {
    let mut command = script.call(count);
    keys.for_each(|key| _ = command.arg(names.name(key)));
    command
}

/// Gateways by the clock of the server say nothing.
pub(super) fn with_time(command: &mut redis::Cmd, time: &Time) {
    if let Time::Given(clock) = time {
        command.arg(clock.now().as_micros());
    }
}

// Reads the answers of scripts.

/// What a decision answers.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::store::redis) struct Answer {
    /// In the order of the charges.
    pub(in crate::store::redis) verdicts: Vec<Verdict>,
    /// How many units were leased of each key that may have leases, in the order of the charges. Empty if the call only looked.
    pub(in crate::store::redis) leased: SmallVec<[u32; 4]>,
}

/// Reads the answer of a decision; `None`: this is not an answer of our script.
pub(in crate::store::redis) fn read(value: &Value, charges: &[&Charge<'_>]) -> Option<Answer> {
    let Value::Array(numbers) = value else { return None };
    let mut numbers = numbers.iter().map(|number| match number {
        Value::Int(number) => Some(*number),
        _ => None,
    });
    let mut next = || numbers.by_ref().next().flatten();
    let moment = Timestamp::from_micros(u64::try_from(next()?).ok()?);
    let mut verdicts = Vec::with_capacity(charges.len());
    for charge in charges {
        let waits = next()?;
        let since = span(next()?).map(|later| moment + later);
        if waits == AnswerCode::Exempt as i64 {
            verdicts.push(Verdict::exempt());
            continue;
        }
        let rates = charge.rule.rates().map_or(0, |rates| rates.as_slice().len());
        let mut standings = Standings::new();
        for _ in 0..rates {
            standings.push(Standing { remaining: u64::try_from(next()?).ok()?, reset: span(next()?)? });
        }
        let fresh = match charge.rule {
            Rule::Distinct(_) => fresh(next()?, &charge.items),
            _ => Items::new(),
        };
        let taken = since.map(|moment| Charged { moment, ledger: Ledger::Shared, fresh, reservation: None });
        verdicts.push(Verdict {
            retry_after: span(waits),
            standings,
            charged: taken,
            is_exempt: false,
            grounds: Grounds::Count,
        });
    }
    let leased: SmallVec<[u32; 4]> = numbers.map(|number| u32::try_from(number?).ok()).collect::<Option<_>>()?;
    let is_leasable = |(charge, verdict): &(&&Charge<'_>, &Verdict)| charge.rule.may_be_leased() && !verdict.is_exempt;
    let leasable = charges.iter().zip(&verdicts).filter(is_leasable).count();
    (leased.is_empty() || leased.len() == leasable).then_some(Answer { verdicts, leased })
}

/// Reads the answer to settlements: whether the message to all gateways could be sent, the moment, and the places of
/// the settlements whose key has room again, or whose client was known before.
pub(in crate::store::redis) fn settled(value: &Value) -> Option<(bool, Timestamp, Vec<usize>)> {
    let Value::Array(numbers) = value else { return None };
    let number = |value: &Value| if let Value::Int(number) = value { Some(*number) } else { None };
    let [published, moment, reopened @ ..] = numbers.as_slice() else { return None };
    let moment = Timestamp::from_micros(u64::try_from(number(moment)?).ok()?);
    let place = |value| usize::try_from(number(value)?).ok()?.checked_sub(1);
    Some((number(published)? == 1, moment, reopened.iter().map(place).collect::<Option<_>>()?))
}

/// The values that are new to the key, given by a bit for each.
fn fresh(bits: i64, items: &[u64]) -> Items {
    let items = encode::different(items).into_iter().enumerate();
    items
        .filter(|(place, _)| bits.checked_shr(u32::try_from(*place).unwrap_or(u32::MAX)).unwrap_or(0) & 1 == 1)
        .map(|(_, item)| item)
        .collect()
}

/// A span of so many microseconds; `None` below zero.
fn span(micros: i64) -> Option<Duration> {
    u64::try_from(micros).ok().map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use proptest::prelude::*;

    use super::*;
    use crate::rules::decision::batch::Items;
    use crate::rules::key::KeyHash;
    use crate::rules::limit::Algorithm;

    fn answer(numbers: &[i64]) -> Option<Vec<Verdict>> {
        let slots = Rule::Concurrent(NonZeroU32::MIN);
        let rates = "1/second; 5/minute".parse().expect("rates");
        let pace = Rule::Rates { algorithm: Algorithm::FixedWindow, rates, cost: NonZeroU32::MIN };
        let charge = |rule| Charge::new(0, KeyHash(1), rule);
        let value = Value::Array(numbers.iter().copied().map(Value::Int).collect());
        Some(read(&value, &[&charge(&slots), &charge(&pace)])?.verdicts)
    }

    #[test]
    fn numbers_become_verdicts() {
        let verdicts = answer(&[1000, -1, 0, 7, -1, 0, 7, 3, 60]).expect("an answer");
        let charged = Charged {
            moment: Timestamp::from_micros(1000),
            ledger: Ledger::Shared,
            fresh: Items::new(),
            reservation: None,
        };
        assert_eq!(verdicts[0].charged, Some(charged));
        assert!(verdicts[0].passes());
        assert_eq!(verdicts[1].charged, None);
        assert_eq!(verdicts[1].retry_after, Some(Duration::from_micros(7)));
        let standings: Vec<_> = verdicts[1].standings.iter().map(|at| (at.remaining, at.reset.as_micros())).collect();
        assert_eq!(standings, [(0, 7), (3, 60)]);
    }

    #[test]
    fn what_is_no_answer_of_a_script_is_none() {
        for numbers in [
            &[][..],
            &[1000],
            &[1000, -1, 0, 7, -1, 0, 7, 3],
            &[1000, -1, 0, 7, -1, 0, 7, 3, 60, 0],
            &[-5, -1, 0, 7, -1, 0, 7, 3, 60],
            &[1000, -1, 0, 7, -1, -1, 7, 3, 60],
        ] {
            assert_eq!(answer(numbers), None, "{numbers:?}");
        }
        assert_eq!(read(&Value::Okay, &[]), None);
        assert_eq!(read(&Value::Array(vec![Value::Int(5), Value::Nil]), &[]), None);
    }

    proptest! {
        #[test]
        fn any_numbers_are_verdicts_or_none(
            few in prop::collection::vec(any::<i64>(), 0..12),
            nine in prop::array::uniform9(prop_oneof![any::<i64>(), -2..100_i64]),
        ) {
            for numbers in [&few[..], &nine[..]] {
                prop_assert!(answer(numbers).is_none_or(|verdicts| verdicts.len() == 2));
            }
            let value = Value::Array(few.iter().copied().map(Value::Int).collect());
            prop_assert!(settled(&value).is_none_or(|(_, _, places)| places.len() + 2 == few.len()));
        }
    }
}
