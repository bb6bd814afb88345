//! A gateway, as far as its leases go.

use std::iter;
use std::time::Duration;

use fastrand::Rng;

use crate::store::leases::HeldLeases;
use crate::words::clock::{Clock, ManualClock, Timestamp};

/// What a gateway holds, under a clock with a pace of its own.
pub(super) struct Gateway {
    pub(super) leases: HeldLeases,
    clock: ManualClock,
    /// How many us it shows more each second.
    drift: i64,
}

pub(super) fn gateways(seed: u64, count: usize) -> Vec<Gateway> {
    let mut random = Rng::with_seed(seed);
    let gateway = || {
        let clock = ManualClock::at(Timestamp::EPOCH);
        Gateway {
            leases: HeldLeases::new(Clock::Manual(clock.clone()), true),
            clock,
            drift: [-45_000, 45_000, random.i64(-45_000..45_000)][random.usize(0..3)],
        }
    };
    iter::repeat_with(gateway).take(count).collect()
}

impl Gateway {
    /// Sets its clock to what it shows `after` the beginning.
    pub(super) fn tick(&self, after: Duration) {
        let micros = i64::try_from(after.as_micros()).expect("short");
        let shown = micros + micros * self.drift / 1_000_000;
        self.clock.set(Timestamp::from_micros(u64::try_from(shown).expect("positive") + 1_000_000_000));
    }
}
