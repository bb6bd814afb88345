//! Charges as arguments of scripts: whole numbers, the highest byte first.

use std::num::NonZeroU32;
use std::time::Duration;

use smallvec::SmallVec;

use super::LEASE;
use super::text::Kind;
use crate::clock::Timestamp;
use crate::decision::Charge;
use crate::decision::batch::Force;
use crate::limit::Algorithm;
use crate::limit::Count;
use crate::limit::Rate;
use crate::limit::Rule;
use crate::store::redis::Time;

/// The bytes of one argument.
pub(super) type Bytes = SmallVec<[u8; 96]>;

/// When something was charged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment(pub(super) Timestamp);

/// A charge as `decide.lua` describes it.
pub(super) fn charge(charge: &Charge<'_>, holder: u32, time: &Time) -> Bytes {
    let mode = u8::from(charge.count == Count::Attempts) + 2 * u8::from(charge.force == Force::Shadow);
    let mut bytes = Bytes::new();
    bytes.extend([Kind::of(charge.rule) as u8, mode]);
    bytes.extend(charge.limit.to_be_bytes());
    match charge.rule {
        Rule::Concurrent(most) => {
            put(&mut bytes, most.get());
            bytes.push(0);
            put(&mut bytes, holder);
            put(&mut bytes, u32::try_from(LEASE.as_secs()).unwrap_or(u32::MAX));
        }
        Rule::Distinct(_) => todo!("distinct in redis"),
        Rule::Rates { algorithm, rates, cost } => {
            let longest = seconds(rates.longest_window());
            put(&mut bytes, cost.get());
            bytes.push(u8::try_from(rates.as_slice().len()).unwrap_or(u8::MAX));
            put(
                &mut bytes,
                match algorithm {
                    Algorithm::SlidingWindowLog => rates.largest_count().get(),
                    Algorithm::BucketedWindow { buckets: some } | Algorithm::TokenBucket { burst: some } => {
                        some.map_or(0, NonZeroU32::get)
                    }
                    Algorithm::SlidingWindowCounter | Algorithm::FixedWindow => 0,
                },
            );
            put(&mut bytes, longest);
            for Rate { count, per } in rates {
                put(&mut bytes, count.get());
                put(&mut bytes, seconds(*per));
            }
            if *algorithm == Algorithm::SlidingWindowLog {
                let lasts = u64::from(longest) * 1000 + slack(time);
                bytes.extend_from_slice(itoa::Buffer::new().format(lasts).as_bytes());
            }
        }
    }
    bytes
}

/// A charge to be taken back, as `give_back.lua` describes it.
pub(super) fn charged(charge: &Charge<'_>, holder: u32, Moment(moment): Moment) -> Bytes {
    let mut bytes = Bytes::new();
    bytes.push(Kind::of(charge.rule) as u8);
    put(
        &mut bytes,
        match charge.rule {
            Rule::Concurrent(_) => holder,
            Rule::Rates { cost, .. } => cost.get(),
            Rule::Distinct(_) => todo!("distinct in redis"),
        },
    );
    bytes.extend(moment.as_micros().to_be_bytes());
    bytes
}

/// A log that is written at each attempt, and forgotten soon.
pub(super) fn probe() -> Bytes {
    let mut bytes = Bytes::new();
    bytes.extend([Kind::Log as u8, 1, 0, 0]);
    put(&mut bytes, 1);
    bytes.push(1);
    for word in [1, 1, 1, 1] {
        put(&mut bytes, word);
    }
    bytes.extend_from_slice(b"2000");
    bytes
}

/// How long a key stays after it says nothing any more, in milliseconds: the clocks of a server and its replica differ,
/// and a time that is given stands still while tests run.
fn slack(time: &Time) -> u64 {
    match time {
        Time::OfServer => 1000,
        Time::Given(_) => 61_000,
    }
}

fn put(bytes: &mut Bytes, word: u32) {
    bytes.extend(word.to_be_bytes());
}

/// Windows are whole seconds, at most a hundred years.
fn seconds(window: Duration) -> u32 {
    u32::try_from(window.as_secs()).unwrap_or(u32::MAX)
}
