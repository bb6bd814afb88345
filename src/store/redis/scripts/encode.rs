//! Writes charges and settlements as arguments of scripts: whole numbers, the highest byte first.

use std::num::NonZeroU32;
use std::time::Duration;

use smallvec::SmallVec;

use super::constants::{CounterKind, GIVEN_SLACK_MS, LEASE, ModeBit, SLACK_MS, SettlementCode};
use crate::rules::decision::Charge;
use crate::rules::decision::batch::{Charged, Force, Items};
use crate::rules::limit::{Algorithm, Count, Rate, Rates, Rule};
use crate::store::leases::{EndedLease, LEASE_SPAN, LeaseRequest};
use crate::store::redis::settings::Time;

/// One argument.
pub(super) type Bytes = SmallVec<[u8; 96]>;

/// Writes a charge of a decision.
pub(super) fn charge(charge: &Charge<'_>, depends_on_known: bool, holder: u32, time: &Time) -> Bytes {
    let mut mode = match charge.force {
        Force::Binding => 0,
        Force::Shadow => ModeBit::Shadow as u8,
        // A charge that cannot be given back is made only if there is room.
        Force::Delay if !charge.is_charged_with(false) => ModeBit::Delay as u8 | ModeBit::WithRoom as u8,
        Force::Delay => ModeBit::Delay as u8,
    };
    if charge.count == Count::Attempts {
        mode |= ModeBit::Attempts as u8;
    }
    if charge.is_free {
        mode |= ModeBit::Free as u8;
    }
    if depends_on_known && charge.unless_known {
        mode |= ModeBit::UnlessKnown as u8;
    }
    let mut bytes = Bytes::new();
    bytes.extend_from_slice(&[CounterKind::of(charge.rule) as u8, mode]);
    bytes.extend_from_slice(&charge.limit.to_be_bytes());
    put_terms(&mut bytes, charge.rule, &charge.items, holder, time);
    bytes
}

/// Writes what a gateway asks about the lease of the key at this place, from 1, while it knows of so many gateways.
pub(super) fn lease(place: usize, nodes: NonZeroU32, request: Option<&LeaseRequest>, is_slots: bool) -> Bytes {
    let request = request.copied().unwrap_or_default();
    let ended = request.ended.unwrap_or_default();
    let mut bytes = Bytes::new();
    bytes.push(0);
    bytes.extend_from_slice(&u16::try_from(place).unwrap_or(u16::MAX).to_be_bytes());
    put(&mut bytes, nodes.get());
    put(&mut bytes, request.wanted);
    put(&mut bytes, u32::try_from(LEASE_SPAN.as_micros()).unwrap_or(u32::MAX));
    bytes.extend_from_slice(&request.id.to_be_bytes());
    bytes.extend_from_slice(&ended.id.to_be_bytes());
    put(&mut bytes, if is_slots { ended.unspent } else { ended.spent });
    bytes
}

/// Writes which lease ends, and how much of it was spent.
pub(super) fn ended_lease(ended: &EndedLease) -> Bytes {
    let mut bytes = Bytes::new();
    bytes.extend_from_slice(&ended.id.to_be_bytes());
    put(&mut bytes, ended.spent);
    bytes
}

/// Writes the settlement that takes back a charge.
pub(super) fn take_back(rule: &Rule, charged: &Charged, time: &Time) -> Bytes {
    let mut bytes = Bytes::new();
    bytes.push(SettlementCode::TakeBack as u8);
    bytes.extend_from_slice(&charged.moment.as_micros().to_be_bytes());
    put_charge(&mut bytes, rule, &charged.fresh, time);
    bytes
}

/// Writes the settlement that charges whether or not there is room.
pub(super) fn charge_now(rule: &Rule, items: &[u64], time: &Time) -> Bytes {
    let mut bytes = Bytes::new();
    bytes.push(SettlementCode::Charge as u8);
    put_charge(&mut bytes, rule, items, time);
    bytes
}

pub(super) fn release(holder: u32, slots: u32) -> Bytes {
    let mut bytes = Bytes::new();
    bytes.push(SettlementCode::Release as u8);
    put(&mut bytes, holder);
    put(&mut bytes, slots);
    bytes
}

pub(super) fn reset() -> Bytes {
    Bytes::from_slice(&[SettlementCode::Reset as u8])
}

pub(super) fn remember(client: u64, most: NonZeroU32, keep: Duration) -> Bytes {
    let mut bytes = Bytes::new();
    bytes.push(SettlementCode::Remember as u8);
    bytes.extend_from_slice(&client.to_be_bytes());
    put(&mut bytes, most.get());
    // Bounded, so that the moment is exact in Lua.
    let keep = u64::try_from(keep.as_micros()).unwrap_or(u64::MAX).min(LONGEST_KEPT);
    bytes.extend_from_slice(&keep.to_be_bytes()[1..]);
    bytes
}

/// Writes the charge of one request outside of a decision.
pub(super) fn charge_alone(rule: &Rule, time: &Time) -> Bytes {
    let mut bytes = Bytes::new();
    put_charge(&mut bytes, rule, &[], time);
    bytes
}

/// Writes a charge outside of a decision.
fn put_charge(bytes: &mut Bytes, rule: &Rule, items: &[u64], time: &Time) {
    bytes.extend_from_slice(&[CounterKind::of(rule) as u8, 0, 0, 0]);
    put_terms(bytes, rule, items, 0, time);
}

/// Writes what the charge asks for, and its bounds.
fn put_terms(bytes: &mut Bytes, rule: &Rule, items: &[u64], holder: u32, time: &Time) {
    match rule {
        Rule::Concurrent(most) => {
            put(bytes, most.get());
            bytes.push(0);
            put(bytes, holder);
            put(bytes, u32::try_from(LEASE.as_secs()).unwrap_or(u32::MAX));
        }
        Rule::Distinct(rates) => {
            let items = different(items);
            put(bytes, u32::try_from(items.len()).unwrap_or(u32::MAX));
            bytes.push(u8::try_from(rates.as_slice().len()).unwrap_or(u8::MAX));
            // One more than has room, so that the script sees that more were counted.
            put(bytes, rates.largest_count().get().saturating_add(1));
            put(bytes, seconds(rates.longest_window()));
            put_rates(bytes, rates);
            items.iter().for_each(|item| bytes.extend_from_slice(&item.to_be_bytes()));
        }
        Rule::Rates { algorithm, rates, cost } => {
            let longest = seconds(rates.longest_window());
            put(bytes, cost.get());
            bytes.push(u8::try_from(rates.as_slice().len()).unwrap_or(u8::MAX));
            put(
                bytes,
                match algorithm {
                    Algorithm::SlidingWindowLog => rates.largest_count().get(),
                    Algorithm::BucketedWindow { buckets: some } | Algorithm::TokenBucket { burst: some } => {
                        some.map_or(0, NonZeroU32::get)
                    }
                    Algorithm::SlidingWindowCounter | Algorithm::FixedWindow => 0,
                },
            );
            put(bytes, longest);
            put_rates(bytes, rates);
            if *algorithm == Algorithm::SlidingWindowLog {
                let lasts = u64::from(longest) * 1000 + slack(time);
                bytes.extend_from_slice(itoa::Buffer::new().format(lasts).as_bytes());
            }
        }
    }
}

/// The values without duplicates, in their order: a script names new values by their places in it.
pub(super) fn different(items: &[u64]) -> Items {
    let mut different = Items::new();
    for item in items {
        if !different.contains(item) {
            different.push(*item);
        }
    }
    different
}

/// Writes the charge of a probe: a log that is written at each attempt, and ends soon.
pub(super) fn probe() -> Bytes {
    let mut bytes = Bytes::new();
    bytes.extend_from_slice(&[CounterKind::Log as u8, ModeBit::Attempts as u8, 0, 0]);
    put(&mut bytes, 1);
    bytes.push(1);
    for word in [1, 1, 1, 1] {
        put(&mut bytes, word);
    }
    bytes.extend_from_slice(b"2000");
    bytes
}

/// How long a key stays after its state has expired, in milliseconds.
fn slack(time: &Time) -> u64 {
    match time {
        Time::OfServer => SLACK_MS,
        Time::Given(_) => GIVEN_SLACK_MS,
    }
}

fn put_rates(bytes: &mut Bytes, rates: &Rates) {
    for Rate { count, per } in rates {
        put(bytes, count.get());
        put(bytes, seconds(*per));
    }
}

fn put(bytes: &mut Bytes, word: u32) {
    bytes.extend_from_slice(&word.to_be_bytes());
}

/// Windows are whole seconds, at most a hundred years.
fn seconds(window: Duration) -> u32 {
    u32::try_from(window.as_secs()).unwrap_or(u32::MAX)
}

/// A hundred years.
const LONGEST_KEPT: u64 = 100 * 365 * 86_400 * 1_000_000;
